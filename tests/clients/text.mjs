// Asks a server for plain text with the AI SDK's own clients, and says what each ends up with.
// stdin: a line for each request, {"reader": "useCompletion" | "useObject" | "TextStreamChatTransport", "url": "…"};
// stdout: a line for each, {"told": what it has at the end, "grew": what it showed on the way, "error": the error's text}.
import { experimental_useObject, useCompletion } from '@ai-sdk/react';
import { AbstractChat, TextStreamChatTransport, jsonSchema } from 'ai';
import { createElement } from 'react';
import { renderToString } from 'react-dom/server';
import { createInterface } from 'node:readline';
import { SWRConfig } from 'swr';

// What a component that is rendered once has of a hook. Its functions work behind that, and its state is in the cache.
function hooked(use, cache) {
  let got;
  const Page = () => { got = use(); return null; };
  const provider = () => cache;
  renderToString(createElement(SWRConfig, { value: { provider } }, createElement(Page)));
  return got;
}

// A cache that notes the values which a person would see.
class Noting extends Map {
  grew = [];
  set(key, state) {
    if (state?.data !== undefined && typeof state.data !== 'boolean') this.grew.push(structuredClone(state.data.object ?? state.data));
    return super.set(key, state);
  }
}

const READERS = {
  async useCompletion(api) {
    const told = { told: null, error: null }, cache = new Noting();
    const { complete } = hooked(() => useCompletion({
      api, streamProtocol: 'text',
      onFinish: (_, completion) => { told.told = completion; }, onError: error => { told.error = error.message; },
    }), cache);
    await complete('Well?');
    return { ...told, grew: cache.grew };
  },
  async useObject(api) {
    const told = { told: null, error: null }, cache = new Noting();
    const { submit } = hooked(() => experimental_useObject({
      api, schema: jsonSchema({ type: 'object' }),
      onFinish: ({ object, error }) => { told.told = object; told.error = error?.message ?? null; },
      onError: error => { told.error = error.message; },
    }), cache);
    await submit('Well?');
    return { ...told, grew: cache.grew };
  },
  async TextStreamChatTransport(api) {
    const told = { told: null, error: null, grew: [] };
    const state = {
      status: 'ready', error: undefined, messages: [],
      pushMessage(message) { this.messages = [...this.messages, message]; },
      popMessage() { this.messages = this.messages.slice(0, -1); },
      replaceMessage(index, message) { this.messages = this.messages.with(index, structuredClone(message)); this.note(); },
      note() { told.grew.push(said(this.messages)); },
      snapshot: value => structuredClone(value),
    };
    const said = messages => messages.at(-1).parts.filter(part => part.type === 'text').map(part => part.text).join('');
    class Chat extends AbstractChat {}
    const chat = new Chat({
      state, transport: new TextStreamChatTransport({ api }),
      onError: error => { told.error = error.message; },
    });
    await chat.sendMessage({ text: 'Well?' });
    if (chat.status === 'ready') told.told = said(state.messages);
    return told;
  },
};

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const { reader, url } = JSON.parse(line);
  process.stdout.write(JSON.stringify(await READERS[reader](url)) + '\n');
}
