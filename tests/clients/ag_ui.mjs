// Reads AG-UI runs with the protocol's own client (schema, order, application), and says what it ends up with.
// stdin: a line for each stream, {"body": "…", "messages": [Message…], "threadId", "runId", "split": bytes, "client"}, or
// {"frames": ["…"…], "ends": [[how many frames, "what follows them"]…], …} for one stream that ends in many ways;
// stdout: a line for each, and for a stream with `ends` a list. `client` is the version of the client that reads it. `then` is
// the run that answers the first one's interrupts, {"body": "…", "responses": {id: {"status", "payload"}}}, told as `second`.
import { HttpAgent, buildResumeArray } from '@ag-ui/client';
import { HttpAgent as HttpAgent_0_0_59, buildResumeArray as buildResumeArray_0_0_59 } from 'ag-ui-client-0.0.59';
import { createInterface } from 'node:readline';

const AGENTS = { '1.0.0': HttpAgent, '0.0.59': HttpAgent_0_0_59 };
const RESUMES = { '1.0.0': buildResumeArray, '0.0.59': buildResumeArray_0_0_59 };

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

async function read({ body, messages = [], threadId = 't1', runId = 'r1', split, client = '1.0.0', then }) {
  const sent = { body };
  const agent = new AGENTS[client]({
    url: 'http://test.invalid/run', threadId, initialMessages: messages,
    fetch: async (_url, init) => {
      sent.request = JSON.parse(init.body);
      return response(sent.body, split);
    },
  });
  const told = await run(agent, sent, { runId });
  if (then) {
    const resume = RESUMES[client](agent.pendingInterrupts, then.responses);
    sent.body = then.body;
    told.second = await run(agent, sent, { runId: `${runId}-2`, resume });
  }
  return told;
}

async function run(agent, sent, parameters) {
  warnings.length = 0;
  const told = {
    started: null, finished: null, runError: null, error: null, custom: [], raw: [], steps: [], pending: null, interrupts: null,
  };
  try {
    await agent.runAgent(parameters, {
      onRunStartedEvent: ({ event }) => { told.started = event; },
      onRunFinishedEvent: ({ event, pendingToolCallIds, interrupts }) => {
        told.finished = event; told.pending = pendingToolCallIds ?? null; told.interrupts = interrupts ?? null;
      },
      onRunErrorEvent: ({ event }) => { told.runError = event; },
      onStepStartedEvent: ({ event }) => { told.steps.push(event.stepName); },
      onStepFinishedEvent: ({ event }) => { told.steps.push(event); },
      onCustomEvent: ({ event }) => { told.custom.push(event); },
      onRawEvent: ({ event }) => { told.raw.push(event); },
      onRunFailed: ({ error }) => { told.error ??= `${error.name}: ${error.message}`; },
    });
  } catch (error) { told.error = `${error.name}: ${error.message}`.slice(0, 800); }
  told.request = sent.request;
  told.messages = structuredClone(agent.messages); told.state = structuredClone(agent.state);
  told.warnings = [...warnings];
  return told;
}

async function readEnds({ frames, ends, ...given }) {
  const answers = [];
  for (const [count, end] of ends) {
    const told = await read({ ...given, body: frames.slice(0, count).join('') + end });
    const { error, runError, finished, pending, messages, warnings } = told;
    answers.push({ error, runError, outcome: finished?.outcome ?? null, finished: finished !== null, pending, messages, warnings });
  }
  return answers;
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  if (!line) continue;
  const given = JSON.parse(line);
  process.stdout.write(JSON.stringify(await (given.ends ? readEnds(given) : read(given))) + '\n');
}
