// The server keeps the messages. The page shows what the server keeps, and follows the reply that is coming.
import { Chat } from "@ai-sdk/react";
import { DefaultChatTransport, readUIMessageStream } from "ai";
import { config } from "zod";

config({ jitless: true }); // the SDK's checks make no code, which the page's security policy forbids

const id = (location.hash ||= `#${crypto.randomUUID()}`).slice(1);
const api = `/api/chat/${encodeURIComponent(id)}`;

export const chat = new Chat({
  id,
  transport: new DefaultChatTransport({
    // Only the question: the server has the rest. `resumeStream` asks `/api/chat/<id>/stream`, as the SDK does by itself.
    prepareSendMessagesRequest: ({ messages }) => ({ api, body: { message: messages.at(-1) } }),
  }),
});

const isIdle = () => chat.status === "ready" || chat.status === "error";
const complete = new Map(); // the replies that have ended, by id
let timer;
let onAway = () => {};

/** A kept reply is what its stream said: it is read as the stream is, so both look the same. */
async function toMessage({ id, ended, chunks }) {
  if (complete.has(id)) return complete.get(id);
  let message = { id, role: "assistant", parts: [] };
  const stream = new ReadableStream({
    start(controller) {
      chunks.forEach((chunk) => controller.enqueue(chunk));
      controller.close();
    },
  });
  for await (message of readUIMessageStream({ message, stream }));
  message = { ...message, metadata: { ...message.metadata, ended } };
  if (ended) complete.set(id, message);
  return message;
}

async function load() {
  const response = await fetch(api);
  if (!response.ok) throw new Error(response.statusText);
  const { live, messages } = await response.json();
  return { live, messages: await Promise.all(messages.map((one) => (one.chunks ? toMessage(one) : one))) };
}

/** Show what the server keeps, and if a reply is coming, follow it to its end. Until the server answers, ask again. */
async function look() {
  clearTimeout(timer);
  if (!isIdle()) return; // a stream is being read, and its end is another look
  const kept = await load().catch(() => null);
  onAway(!kept);
  if (!isIdle()) return;
  if (kept) chat.messages = kept.messages;
  if (kept?.live) await chat.resumeStream();
  if (!kept || kept.live) timer = setTimeout(look, kept ? 50 : 500);
}

/** Ask the question, and follow the reply to its end. Returns why the server hasn't taken the question. */
export async function send(message) {
  await chat.sendMessage(message);
  const asked = chat.messages.findLast(({ role }) => role === "user")?.id;
  const problem = chat.error?.message ?? "";
  await look();
  return chat.messages.some(({ id }) => id === asked) ? "" : problem;
}

/** For all who read the reply; `chat.stop` would only stop reading. */
export const stop = () => fetch(`${api}/stop`, { method: "POST" }).catch(() => {});

/** Look now, and again whenever the server says that something has changed. `fn` is told whether the server is away. */
export function connect(fn) {
  onAway = fn;
  const changes = new EventSource(`${api}/changes`); // comes back by itself
  changes.onmessage = look;
  changes.onerror = () => fn(true);
  look();
  return () => changes.close();
}
