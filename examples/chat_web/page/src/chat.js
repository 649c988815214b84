// The server keeps the messages. The page shows what the server keeps, and follows the reply that is coming.
import { Chat } from "@ai-sdk/react";
import { DefaultChatTransport, readUIMessageStream } from "ai";

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
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const complete = new Map(); // the replies that have ended, by id
let looking = false;
let wanted = false;
let held = null; // the reply as far as it was shown, until its stream has said so much again
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

/** What the server keeps. Asks again until it answers. */
async function load() {
  for (;;) {
    try {
      const { live, messages } = await (await fetch(api)).json();
      onAway(false);
      return { live, messages: await Promise.all(messages.map((one) => (one.chunks ? toMessage(one) : one))) };
    } catch {
      onAway(true);
      await sleep(500);
    }
  }
}

/** Show what the server keeps, and follow the reply that is coming to its end. */
async function look() {
  wanted = true;
  if (looking) return; // it looks again when it is done
  looking = true;
  while (wanted && isIdle()) {
    wanted = false;
    const kept = await load();
    if (!isIdle()) break; // a question was sent meanwhile, and the end of its reply is another look
    chat.messages = kept.messages;
    if (!kept.live) continue;
    held = kept.messages.at(-1);
    await chat.resumeStream();
    held = null;
    await sleep(50); // the server may not have written down the end yet
    wanted = true;
  }
  looking = false;
}

/** The messages as the page shows them: a reply whose stream is read again, from its start, doesn't shrink meanwhile. */
export function shown(messages) {
  const last = messages.at(-1);
  if (held && last !== held && size(last) >= size(held)) held = null;
  return held ? [...messages.slice(0, -1), held] : messages;
}
const size = (message) => JSON.stringify(message?.parts ?? []).length;

/** Ask the question, and follow the reply to its end. Returns why the server hasn't taken the question. */
export async function send(message) {
  await chat.sendMessage(message);
  const question = chat.messages.findLast(({ role }) => role === "user");
  const problem = chat.error?.message;
  const kept = await load();
  look();
  return kept.messages.some(({ id }) => id === question.id) ? "" : problem;
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
