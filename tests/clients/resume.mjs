// Reads cut streams with the front ends' own clients, which then go on, and says what they end up with.
// stdin: a line for each case; stdout: a line for each.
// {"kind": "ai-sdk", "first": "…", "again": "…" or null for 204}: a chat whose line breaks behind `first` and that resumes,
// and a page that was loaded anew and resumes.
// {"kind": "ag-ui", "first": "…", "rest": {id: "…"}}: an agent with the `fetch` of docs/reference/resuming.md.
import { HttpAgent } from '@ag-ui/client';
import { AbstractChat, DefaultChatTransport } from 'ai';
import { HttpAgent as HttpAgent_0_0_59 } from 'ag-ui-client-0.0.59';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const page = readFileSync(new URL('../../docs/reference/resuming.md', import.meta.url), 'utf8');
const [block] = [...page.matchAll(/^```js\n(.*?)^```/gms)].map(([, code]) => code).filter(code => code.includes('resuming'));
const { resuming } = await import(`data:text/javascript,${encodeURIComponent(block)}`);
for (const level of ['log', 'info', 'debug', 'warn', 'error']) console[level] = () => {};

class Chat extends AbstractChat {}

class State {
  status = 'ready';
  error = undefined;
  constructor(messages) { this.messages = messages; }
  pushMessage(message) { this.messages = [...this.messages, message]; }
  popMessage() { this.messages = this.messages.slice(0, -1); }
  replaceMessage(index, message) { this.messages = this.messages.with(index, structuredClone(message)); }
  snapshot(value) { return structuredClone(value); }
}

// A body of which each piece is read before the next comes, and the line breaks unless it is whole.
function response(body, { whole = true, size = 1 << 16, headers = {} } = {}) {
  if (body === null) return new Response(null, { status: 204 });
  const bytes = new TextEncoder().encode(body);
  let at = 0;
  const stream = new ReadableStream({
    pull(controller) {
      if (at < bytes.length) controller.enqueue(bytes.slice(at, (at += size)));
      else if (whole) controller.close();
      else controller.error(new TypeError('network error'));
    },
  }, { highWaterMark: 0 });
  return new Response(stream, { headers: { 'content-type': 'text/event-stream', ...headers } });
}

async function aiSdk({ first, again }) {
  const asked = [];
  const errors = [];
  const chat = (messages, answers) => {
    const state = new State(messages);
    const fetch = async (url, init) => {
      asked.push(`${init.method} ${new URL(url).pathname}`);
      return answers.shift();
    };
    const transport = new DefaultChatTransport({ api: 'http://test.invalid/api/chat', fetch });
    const onError = error => errors.push(error.message);
    return new Chat({ id: 'c 1', state, transport, generateId: () => crypto.randomUUID(), onError });
  };
  const open = chat([], [response(first, { whole: again === undefined }), response(again ?? null)]);
  await open.sendMessage({ text: 'Well?' });
  const question = open.messages[0];
  if (again !== undefined) await open.resumeStream();
  const loaded = chat([question], [response(again ?? null)]);
  await loaded.resumeStream();
  const shown = ({ messages, status }) => ({ messages: messages.slice(1).map(({ parts, metadata }) => ({ parts, metadata })), status });
  return { open: shown(open), loaded: shown(loaded), asked, errors };
}

async function agUi({ first, rest, client, size }) {
  const asked = [];
  const fetch = async (url, init) => {
    const id = init.headers['Last-Event-ID'] ?? null;
    asked.push(id);
    return id === null && asked.length === 1 ? response(first, { whole: false, size }) : response(rest[id ?? '']);
  };
  const Agent = client === '1.0.0' ? HttpAgent : HttpAgent_0_0_59;
  const agent = new Agent({ url: 'http://test.invalid/run', threadId: 't', fetch: resuming(fetch, { wait: 0 }) });
  let error = null;
  try {
    await agent.runAgent({ runId: 'r' }, { onRunFailed: told => { error ??= String(told.error); } });
  } catch (thrown) { error ??= String(thrown); }
  return { messages: agent.messages, asked, error };
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  if (!line) continue;
  const given = JSON.parse(line);
  process.stdout.write(JSON.stringify(await (given.kind === 'ai-sdk' ? aiSdk : agUi)(given)) + '\n');
}
