// The page: the AI SDK's useChat. `chat.js` follows the server, `parts.jsx` shows the parts of a message.
import "./jitless.js";
import { useChat } from "@ai-sdk/react";
import { useEffect, useRef, useState } from "react";
import { createRoot } from "react-dom/client";
import { answer, chat, connect, send, shown, stop, waits } from "./chat.js";
import { Message } from "./parts.jsx";

function App() {
  const { messages, status } = useChat({ chat, throttle: 50 });
  const [question, setQuestion] = useState("Lisbon or Oslo for a weekend of walking?");
  const [problem, setProblem] = useState("");
  const [away, setAway] = useState(false);
  const files = useRef();
  useEffect(() => connect(setAway), []);

  async function submit(event) {
    event.preventDefault();
    const sent = send({ text: question, files: files.current.files });
    setQuestion("");
    event.target.reset();
    const refused = await sent;
    setProblem(refused);
    if (refused) setQuestion(question);
  }
  const busy = status === "submitted" || status === "streaming";
  const last = messages.at(-1);
  return (
    <main data-status={status} data-away={away}>
      {shown(messages).map((message) => (
        <Message
          key={message.id}
          message={message}
          away={away}
          isComing={busy && message.id === last.id}
          answer={message === last && waits(last) ? answer : null}
        />
      ))}
      {busy && last?.role === "user" && <p className="end">…</p>}
      {problem && <p className="error">not sent: {problem}</p>}
      {away && <p className="away">the server can’t be reached, reconnecting …</p>}
      <form onSubmit={submit}>
        <input
          id="question"
          required
          placeholder="such as: Book a room in Lisbon"
          value={question}
          onChange={(event) => setQuestion(event.target.value)}
        />
        <input id="files" type="file" accept="image/*" ref={files} />
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

createRoot(document.getElementById("root")).render(<App />);
