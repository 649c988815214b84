// A chat with the `useChat` options of docs/frontends/reload.md whose worker is stopped in the middle of a reply.
// stdin: {"workers": ["http://…", …], "pid": the first one's, "words": the file of tests/asgi/worker_app.py}
// stdout: what the chat shows in the end, its errors, and which worker answered each request.
import { AbstractChat, DefaultChatTransport } from 'ai';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const page = readFileSync(new URL('../../docs/frontends/reload.md', import.meta.url), 'utf8');
const [code] = [...page.matchAll(/^```js\n(.*?)^```/gms)].map(([, code]) => code).filter(code => code.includes('useChat'));

class Chat extends AbstractChat {}

class State {
  messages = [];
  status = 'ready';
  error = undefined;
  pushMessage(message) { this.messages = [...this.messages, message]; }
  popMessage() { this.messages = this.messages.slice(0, -1); }
  replaceMessage(index, message) { this.messages = this.messages.with(index, structuredClone(message)); }
  snapshot(value) { return structuredClone(value); }
}

async function until(holds) {
  while (!holds()) await sleep(10);
}

async function run({ workers, pid, words }) {
  const asked = [];
  const errors = [];
  // As a proxy does: another worker where one takes no connection.
  const fetch = async (url, init) => {
    for (const worker of workers) {
      try {
        const response = await globalThis.fetch(worker + url, init);
        asked.push(`${init.method} ${url} at ${workers.indexOf(worker)}: ${response.status}`);
        return response;
      } catch (error) {
        if (worker === workers.at(-1)) throw error;
      }
    }
  };
  let chat;
  const useChat = options => {
    const onError = error => {
      errors.push(error.name);
      options.onError(error);
    };
    chat = new Chat({ id: 'c1', state: new State(), transport: new DefaultChatTransport({ fetch }), onError });
    return { resumeStream: chat.resumeStream, setMessages: messages => (chat.messages = messages) };
  };
  const stored = async () => chat.messages.slice(0, 1);
  new Function('useChat', 'stored', code)(useChat, stored);
  const say = more => {
    writeFileSync(`${words}.new`, readFileSync(words, 'utf8') + more);
    renameSync(`${words}.new`, words);
  };
  const text = () => chat.messages.at(-1)?.parts.map(part => part.text ?? '').join('') ?? '';
  chat.sendMessage({ text: 'Well?' });
  await until(() => text() === 'one two ');
  process.kill(pid, 'SIGTERM');
  await until(() => errors.length);
  const shown = text();
  say(' three');
  await until(() => text() === 'one two three ');
  say(' end');
  await until(() => chat.status === 'ready');
  return { shown, messages: chat.messages.map(({ role, parts }) => ({ role, parts })), errors, asked };
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  if (line) process.stdout.write(JSON.stringify(await run(JSON.parse(line))) + '\n');
}
