// The same chat without a library: an EventSource, which comes back by itself, and an element for each part. All that a
// model writes is put in as text, never as HTML.
const api = `/api/chat/${encodeURIComponent((location.hash ||= `#${crypto.randomUUID()}`).slice(1))}`;
const [messages, form] = [document.querySelector("#messages"), document.querySelector("form")];
const [question, send, stop] = ["#question", "#send", "#stop"].map((name) => document.querySelector(name));
let source;
const isReading = () => source && source.readyState !== EventSource.CLOSED;

const make = (tag, className = "", text = "") =>
  Object.assign(document.createElement(tag), { className, textContent: text });

/** A section for a message, with its parts by id. */
function section(role, id) {
  const [element, parts, questions] = [make("section", role), {}, {}];
  messages.append(element);
  const add = (id, ...made) => element.append((parts[id] = make(...made)));
  const link = (id, { url, title }, className) => {
    add(id, "a", className, title ?? url ?? "a file");
    if (/^https?:/i.test(url)) Object.assign(parts[id], { href: url, target: "_blank", rel: "noopener noreferrer" });
  };
  const tool = (frame, state, said = "") => {
    if (!parts[frame.toolCallId]) {
      add(frame.toolCallId, "div", "tool");
      parts[frame.toolCallId].append(make("b", "", frame.toolName), " ", make("span", "state"), make("pre"));
    }
    const card = parts[frame.toolCallId];
    card.dataset.state = card.querySelector(".state").textContent = state;
    card.querySelector("pre").textContent += said;
  };
  let step = 0; // ids are new in each step
  const on = {
    "start-step": () => (step = element.childElementCount),
    "reset-step": () => [...element.children].slice(step).forEach((part) => part.remove()),
    "text-start": (frame) => add(frame.id, "p", "text"),
    "text-delta": (frame) => parts[frame.id].append(frame.delta),
    "reasoning-start": (frame) => add(frame.id, "p", "reasoning"),
    "reasoning-delta": (frame) => parts[frame.id].append(frame.delta),
    "tool-input-start": (frame) => tool(frame, "input-streaming"),
    "tool-input-delta": (frame) => tool(frame, "input-streaming", frame.inputTextDelta),
    "tool-input-available": (frame) => {
      tool(frame, "input-available");
      parts[frame.toolCallId].querySelector("pre").textContent = JSON.stringify(frame.input);
    },
    "tool-input-error": (frame) => tool(frame, "output-error", `\n${frame.errorText}`),
    "tool-output-available": (frame) =>
      frame.preliminary || tool(frame, "output-available", `\n${JSON.stringify(frame.output)}`),
    "tool-output-error": (frame) => tool(frame, "output-error", `\n${frame.errorText}`),
    "tool-output-denied": (frame) => tool(frame, "output-denied"),
    "tool-approval-request": (frame) => {
      tool(frame, "approval-requested");
      questions[frame.toolCallId] = frame.approvalId;
    },
    "source-url": (frame) => link(frame.sourceId, frame, "source"),
    "data-search": ({ data, id }) => {
      if (!parts[id]) add(id, "p", "search");
      parts[id].textContent = data.documents ? `${data.documents.length} documents found` : "searching …";
    },
    file: (frame) => {
      if (!/^data:image\//i.test(frame.url)) return link(frame.url, frame, "file");
      add(frame.url, "img", "file");
      parts[frame.url].src = frame.url;
    },
  };
  const end = (how) => {
    parts.end ??= element.appendChild(make("p", "end"));
    parts.end.textContent = how === "done" ? "" : how; // never as finished unless the server says so
    element.append(parts.end);
  };
  /** The cards that wait for a person, who may answer now. The server reads of this message the answer only. */
  const ask = () => {
    for (const [toolCallId, approvalId] of Object.entries(questions)) {
      const card = parts[toolCallId];
      if (card.dataset.state !== "approval-requested") continue;
      const type = `tool-${card.querySelector("b").textContent}`;
      for (const [word, approved] of [["Approve", true], ["Deny", false]]) {
        const approval = { id: approvalId, approved };
        const part = { type, toolCallId, state: "approval-responded", input: {}, approval };
        const button = card.appendChild(make("button", "", word));
        button.onclick = () => say({ id, role: "assistant", parts: [part] });
      }
    }
  };
  const show = (frame) => on[frame.type]?.(frame);
  return { show, end, ask };
}

/** Show what the server keeps, and read the reply that is coming. Until the server answers, ask again. */
async function look() {
  const kept = await fetch(api).then((response) => response.json()).catch(() => null);
  if (!kept) return setTimeout(look, 500);
  if (isReading()) return; // the end of what is read is another look
  messages.replaceChildren();
  let last;
  for (const { id, role, parts, chunks = [], ended } of kept.messages) {
    last = section(role ?? "assistant", id);
    for (const part of parts ?? []) {
      if (part.type === "text") last.show({ type: "text-start" });
      last.show(part.type === "text" ? { type: "text-delta", delta: part.text } : part);
    }
    if (ended) chunks.forEach(last.show); // of the reply that is coming, the stream says it again from the start
    if (ended) last.end(ended);
  }
  [send.hidden, stop.hidden] = [kept.live, !kept.live];
  if (kept.live) read(last);
  else if (kept.messages.at(-1)?.ended === "done") last.ask();
}

function read({ show, end }) {
  let [frames, at] = [[], ""];
  source?.close();
  source = new EventSource(`${api}/stream`);
  end("…");
  source.onopen = () => {
    frames = []; // what came without an id comes again
    end("…");
  };
  source.onerror = () => {
    end("the line is broken, reconnecting …"); // and goes on behind the last id that it has
    if (source.readyState === EventSource.CLOSED) look(); // nothing comes any more: the server knows how it ended
  };
  source.onmessage = ({ data, lastEventId }) => {
    const isEnd = data === "[DONE]";
    if (!isEnd) frames.push(JSON.parse(data));
    if (lastEventId === at && !isEnd) return; // frames of one event: the last of them has the id
    at = lastEventId;
    frames.splice(0).forEach(show);
    if (!isEnd) return;
    source.close();
    look();
  };
}

/** Returns whether the server has taken the message. */
async function say(message) {
  const headers = { "content-type": "application/json" };
  const options = { method: "POST", headers, body: JSON.stringify({ message }) };
  const response = await fetch(api, options).catch(() => null);
  response?.body?.cancel(); // the EventSource reads it
  look();
  return response?.ok;
}

form.onsubmit = async (event) => {
  event.preventDefault();
  const parts = [{ type: "text", text: question.value }];
  if (await say({ id: crypto.randomUUID(), role: "user", parts })) question.value = "";
};
stop.onclick = () => fetch(`${api}/stop`, { method: "POST" });
new EventSource(`${api}/changes`).onmessage = look;
