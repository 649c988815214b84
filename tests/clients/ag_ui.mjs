// Reads AG-UI runs with the protocol's own client (schema, order, application), and says what it ends up with.
// stdin: a line for each stream, {"body": "…", "messages": [Message…], "threadId", "runId", "split": bytes, "client"};
// stdout: a line for each. `client` is the version of the client that reads it.
import { HttpAgent } from '@ag-ui/client';
import { HttpAgent as HttpAgent_0_0_59 } from 'ag-ui-client-0.0.59';
import { createInterface } from 'node:readline';

const AGENTS = { '1.0.0': HttpAgent, '0.0.59': HttpAgent_0_0_59 };

const warnings = [];
for (const level of ['log', 'info', 'debug', 'warn', 'error']) {
  console[level] = (...said) => warnings.push(said.map(one => one?.message ?? String(one)).join(' ').slice(0, 300));
}

// The body in pieces of `split` bytes, so that characters and frames are cut anywhere.
function response(body, split) {
  const bytes = new TextEncoder().encode(body);
  const size = split || bytes.length || 1;
  const stream = new ReadableStream({
    start(controller) {
      for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
      controller.close();
    },
  });
  return new Response(stream, { status: 200, headers: { 'content-type': 'text/event-stream' } });
}

async function read({ body, messages = [], threadId = 't1', runId = 'r1', split, client = '1.0.0' }) {
  warnings.length = 0;
  const told = { started: null, finished: null, runError: null, error: null, custom: [], raw: [], pending: null };
  const agent = new AGENTS[client]({
    url: 'http://test.invalid/run', threadId, initialMessages: messages,
    fetch: async (_url, init) => {
      told.request = JSON.parse(init.body);
      return response(body, split);
    },
  });
  try {
    await agent.runAgent({ runId }, {
      onRunStartedEvent: ({ event }) => { told.started = event; },
      onRunFinishedEvent: ({ event, pendingToolCallIds }) => { told.finished = event; told.pending = pendingToolCallIds ?? null; },
      onRunErrorEvent: ({ event }) => { told.runError = event; },
      onCustomEvent: ({ event }) => { told.custom.push(event); },
      onRawEvent: ({ event }) => { told.raw.push(event); },
      onRunFailed: ({ error }) => { told.error ??= `${error.name}: ${error.message}`; },
    });
  } catch (error) { told.error = `${error.name}: ${error.message}`.slice(0, 800); }
  told.messages = agent.messages; told.state = agent.state;
  told.warnings = [...warnings];
  return told;
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  if (line) process.stdout.write(JSON.stringify(await read(JSON.parse(line))) + '\n');
}
