// Reads streams with the clients of assistant-ui and TanStack AI, and says what each ends up with.
// stdin: a line for each stream, {"client": "assistant-ui" | "tanstack", "body": "…", "split": bytes};
// stdout: a line for each, {"text", "reasoning", "calls": [[name, arguments]…], "status", "error", "request"}.
import { ChatClient, fetchServerSentEvents } from '@tanstack/ai-client';
import { AssistantMessageAccumulator, UIMessageStreamDecoder } from 'assistant-stream';
import { createInterface } from 'node:readline';

const HEADERS = { 'content-type': 'text/event-stream' };

// The body in pieces of `split` bytes, so that characters and frames are cut anywhere.
function streamed(body, split) {
  const bytes = new TextEncoder().encode(body);
  const size = split || bytes.length || 1;
  return new ReadableStream({
    start(controller) {
      for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
      controller.close();
    },
  });
}

const CLIENTS = {
  // What `useDataStreamRuntime` of @assistant-ui/react-data-stream does with the body of a response.
  async 'assistant-ui'({ body, split }) {
    let message = null, error = null;
    try {
      const read = streamed(body, split).pipeThrough(new UIMessageStreamDecoder()).pipeThrough(new AssistantMessageAccumulator());
      for await (const one of read) message = one;
    } catch (raised) { error = String(raised); }
    const parts = message?.parts ?? [];
    const said = type => parts.filter(part => part.type === type).map(part => part.text).join('');
    const calls = parts.filter(part => part.type === 'tool-call').map(part => [part.toolName, part.args]);
    return { text: said('text'), reasoning: said('reasoning'), calls, status: message?.status ?? null, error };
  },
  async tanstack({ body, split }) {
    let error = null, request = null;
    const fetchClient = async (_url, init) => {
      request = JSON.parse(init.body);
      return new Response(streamed(body, split), { status: 200, headers: HEADERS });
    };
    const client = new ChatClient({
      connection: fetchServerSentEvents('http://test.invalid/chat', { fetchClient }),
      onError: raised => { error = raised.message; },
    });
    await client.sendMessage('Well?');
    const status = client.getStatus();
    const parts = client.getMessages().filter(message => message.role === 'assistant').flatMap(message => message.parts);
    client.dispose();
    const said = type => parts.filter(part => part.type === type).map(part => part.content).join('');
    const calls = parts.filter(part => part.type === 'tool-call').map(part => [part.name, part.arguments]);
    return { text: said('text'), reasoning: said('thinking'), calls, status, error, request };
  },
};

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  if (!line) continue;
  const { client, ...given } = JSON.parse(line);
  process.stdout.write(JSON.stringify(await CLIENTS[client](given)) + '\n');
}
