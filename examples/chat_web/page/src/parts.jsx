// How each part of a message is shown. Nothing a model writes becomes HTML, and nothing it names is loaded.
import { useState } from "react";
import Markdown from "react-markdown";
import remarkGfm from "remark-gfm";
import remend from "remend";

const isWeb = (url) => /^https?:\/\//i.test(url);

function Link({ href, children }) {
  if (!isWeb(href ?? "")) return <span>{children}</span>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

// An image's address can carry away what the model has read, so a person decides to open it.
const components = {
  a: ({ href, children }) => <Link href={href}>{children}</Link>,
  img: ({ src, alt }) => <Link href={src}>{alt || "an image"}</Link>,
};

function Text({ text, state }) {
  // While the text grows, what it hasn't closed yet, such as `**`, is closed for it.
  return (
    <div className="text">
      <Markdown remarkPlugins={[remarkGfm]} components={components}>
        {state === "streaming" ? remend(text) : text}
      </Markdown>
    </div>
  );
}

/** A call that needs a person's yes. Without `answer` it is too early, or too late: the chat has gone on, or the reply broke off. */
function Question({ id, isComing, answer }) {
  const [reason, setReason] = useState("");
  if (!answer) return <p className="end">{isComing ? "…" : "not answered"}</p>;
  // No form: Enter in the field would press its first button.
  return (
    <div className="question">
      <button onClick={() => answer(id, true, reason || undefined)}>Approve</button>
      <button onClick={() => answer(id, false, reason || undefined)}>Deny</button>
      <input placeholder="Why?" value={reason} onChange={(event) => setReason(event.target.value)} />
    </div>
  );
}

function Tool({ part, ...more }) {
  const state = part.preliminary ? "output-preliminary" : part.state;
  return (
    <div className="tool" data-state={state}>
      <b>{part.toolName ?? part.type.replace("tool-", "")}</b> <span className="state">{state}</span>
      <pre>{JSON.stringify(part.input ?? part.rawInput)}</pre>
      {part.output !== undefined && <pre>{JSON.stringify(part.output)}</pre>}
      {part.errorText && <pre className="error">{part.errorText}</pre>}
      {part.state === "approval-requested" && <Question id={part.approval.id} {...more} />}
      {part.approval?.reason && <p className="reason">“{part.approval.reason}”</p>}
    </div>
  );
}

function File({ url, mediaType, filename }) {
  if (/^data:image\//i.test(url)) return <img src={url} alt={filename ?? "an image"} />;
  if (url.startsWith("data:")) {
    return (
      <a href={url} download={filename ?? "file"}>
        {filename ?? mediaType}
      </a>
    );
  }
  return <Link href={url}>{filename ?? url}</Link>;
}

/** The application's own data: an event `Custom("search", …)` of the server. */
function Search({ query, documents }) {
  if (!documents) return <p className="search">searching “{query}” …</p>;
  return (
    <details className="search">
      <summary>{documents.length === 1 ? "1 document" : `${documents.length} documents`} found</summary>
      <ul>
        {documents.map(({ title, url }) => (
          <li key={url}>
            <Link href={url}>{title}</Link>
          </li>
        ))}
      </ul>
    </details>
  );
}

function Part({ part, role, ...more }) {
  if (part.type === "text") return role === "user" ? <p className="text">{part.text}</p> : <Text {...part} />;
  if (part.type === "reasoning") return part.text && <p className="reasoning">{part.text}</p>;
  if (part.type === "file") return <File {...part} />;
  if (part.type === "data-search") return <Search {...part.data} />;
  if (part.type === "dynamic-tool" || part.type.startsWith("tool-")) return <Tool part={part} {...more} />;
  return null;
}

/** How a reply ended. It is never shown as finished unless the server says that it is. */
function End({ ended, status, finishReason, isComing, away }) {
  if (isComing) return <p className="end">{away ? "the line is broken, reconnecting …" : "…"}</p>;
  if (ended !== "done") return <p className="end broken">{ended}</p>;
  return status === "complete" ? null : <p className="end broken">cut off: {finishReason ?? status}</p>;
}

export function Message({ message, away, isComing, answer }) {
  const comes = isComing || !message.metadata?.ended;
  const sources = message.parts.filter(({ type }) => type.startsWith("source-"));
  return (
    <section className={message.role}>
      {message.parts.map((part, place) => (
        <Part key={place} part={part} role={message.role} isComing={comes} answer={answer} />
      ))}
      {sources.length > 0 && (
        <ol className="sources">
          {sources.map(({ sourceId, title, url }) => (
            <li key={sourceId}>{url ? <Link href={url}>{title ?? url}</Link> : title}</li>
          ))}
        </ol>
      )}
      {message.role === "assistant" && <End {...message.metadata} isComing={comes} away={away} />}
    </section>
  );
}
