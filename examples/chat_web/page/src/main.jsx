// The page: the AI SDK's useChat over the server's stream. What it shows is what `parts` of a message say.
import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport } from "ai";
import { useEffect, useState } from "react";
import { createRoot } from "react-dom/client";

const chat = (location.hash ||= `#${crypto.randomUUID().slice(0, 8)}`).slice(1);
const kept = `/api/chat/${chat}/messages`;

function Tool({ part }) {
  const name = part.toolName ?? part.type.replace("tool-", "");
  const state = part.preliminary ? "output-preliminary" : part.state;
  return (
    <div className="tool" data-state={state}>
      <b>{name}</b> <span className="state">{state}</span>
      <pre>{JSON.stringify(part.input ?? part.rawInput)}</pre>
      {part.output !== undefined && <pre>{JSON.stringify(part.output)}</pre>}
      {part.errorText && <pre className="error">{part.errorText}</pre>}
    </div>
  );
}

function Part({ part }) {
  if (part.type === "text") return <p className="text">{part.text}</p>;
  if (part.type === "reasoning") return <p className="reasoning">{part.text}</p>;
  if (part.type === "dynamic-tool" || part.type.startsWith("tool-")) return <Tool part={part} />;
  return null;
}

function Chat({ known }) {
  const { messages, sendMessage, status, stop, error } = useChat({
    id: chat,
    messages: known,
    transport: new DefaultChatTransport({ api: `/api/chat/${chat}` }),
    onFinish: ({ messages }) => fetch(kept, { method: "PUT", body: JSON.stringify(messages) }),
  });
  const [question, setQuestion] = useState("Lisbon or Oslo for a weekend of walking?");
  const busy = status === "submitted" || status === "streaming";
  return (
    <main data-status={status}>
      {messages.map((message) => (
        <section key={message.id} className={message.role}>
          {message.parts.map((part, place) => (
            <Part key={place} part={part} />
          ))}
        </section>
      ))}
      {error && <p className="error">{error.message}</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          sendMessage({ text: question });
        }}
      >
        <input value={question} onChange={(event) => setQuestion(event.target.value)} />
        {busy ? (
          <button key="stop" type="button" id="stop" onClick={stop}>
            Stop
          </button>
        ) : (
          <button key="send" id="send">
            Send
          </button>
        )}
      </form>
    </main>
  );
}

function App() {
  const [known, setKnown] = useState(null);
  useEffect(() => {
    fetch(kept).then(async (response) => setKnown(await response.json()));
  }, []);
  return known && <Chat known={known} />;
}

createRoot(document.getElementById("root")).render(<App />);
