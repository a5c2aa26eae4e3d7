import { absent, impossible, type Outcome, passes, translated } from './features.ts';

interface FurtherRow {
  readonly title: string;
  readonly outcomes: Readonly<Record<'modern → legacy' | 'legacy → modern', Outcome>>;
  /** Where it is tested, in test/, with something to look for in it. */
  readonly tests: Readonly<Record<string, string>>;
}

/** What has tests of its own besides the matrix; docs/reference/compatibility.md shows it, too. */
export const FURTHER_FEATURES: readonly FurtherRow[] = [
  {
    title: 'Skills (SEP-2640)',
    outcomes: {
      'modern → legacy': translated(),
      'legacy → modern': translated(),
    },
    tests: { 'real-peers/extensions.test.ts': 'skillsPass' },
  },
  {
    title: 'MCP Apps (SEP-1865)',
    outcomes: {
      'modern → legacy': translated(),
      'legacy → modern': translated(),
    },
    tests: { 'real-peers/extensions.test.ts': 'appsPass' },
  },
  {
    title: 'Changes that an extension adds to `subscriptions/listen`',
    outcomes: {
      'modern → legacy': impossible(
        'only the extension knows what they are',
        'the acknowledgment leaves them out; they are dropped, and logged at `debug`',
      ),
      'legacy → modern': impossible('a legacy client cannot ask for them', 'the server is not asked'),
    },
    tests: {
      'eras/modern-to-legacy/calls.test.ts': 'skillsChanged',
      'eras/legacy-to-modern/changes.test.ts': 'com.example/changing',
    },
  },
  {
    title: 'Tasks',
    outcomes: {
      'modern → legacy': translated(
        'clients that declare the extension follow the task, where a tool can or must run as one; others get the result',
      ),
      'legacy → modern': translated('mcp-portage follows the task, and the client gets the plain result'),
    },
    tests: {
      'eras/modern-to-legacy/sdk-tasks.test.ts': 'a task is created, followed to its end, and canceled',
      'eras/modern-to-legacy/tasks.test.ts': 'a tool that runs only as a task is waited for',
      'real-peers/tasks.test.ts': 'a client that follows tasks gets one of a tool that can or must run as one',
      'eras/legacy-to-modern/tasks.test.ts': 'a call that its server runs only as a task is followed to its end',
    },
  },
  {
    title: 'Tasks that the client runs for the server',
    outcomes: {
      'modern → legacy': absent('none are declared to the server'),
      'legacy → modern': absent('a modern server knows none'),
    },
    tests: { 'mcp/translate/capabilities.test.ts': 'tasks' },
  },
  {
    title: 'Elicitation by a URL to open',
    outcomes: {
      'modern → legacy': translated(
        '−32042 becomes an `input_required`; with consent the call is sent again; a client that opens no URLs gets −32021',
      ),
      'legacy → modern': translated(),
    },
    tests: {
      'eras/modern-to-legacy/questions/url-elicitations.test.ts':
        'URLs a call requires are shown, and with consent the call is sent once more',
      'eras/legacy-to-modern/rounds.test.ts': 'a URL to open gets the id that the revision of the client wants',
    },
  },
  {
    title: 'Arguments in headers (`x-mcp-header`)',
    outcomes: {
      'modern → legacy': translated('the annotations are removed from tools'),
      'legacy → modern': translated('mcp-portage sends the headers, and hides tools with invalid annotations'),
    },
    tests: {
      'eras/modern-to-legacy/calls.test.ts': 'a tool stays, without the annotation of parameters',
      'upstream/streamable-stateless/headers.test.ts': 'arguments go into the headers the tool names',
    },
  },
  {
    title: 'Content that older revisions do not know',
    outcomes: {
      'modern → legacy': passes,
      'legacy → modern': translated('audio and links become other content; structured content is wrapped or removed'),
    },
    tests: {
      'eras/legacy-to-modern/calls.test.ts':
        'output that is no object is wrapped, in the list and in what the tool answers',
    },
  },
  {
    title: 'Resuming the stream of a call',
    outcomes: {
      'modern → legacy': impossible(
        'the stream is the request',
        'if the client is cut off, the call is canceled; a broken stream of the server is resumed',
      ),
      'legacy → modern': impossible(
        'the stream is the request',
        'if the server is cut off, the client gets an error, and the tool may have run; the client can resume its own stream',
      ),
    },
    tests: {
      'eras/modern-to-legacy/http-server.test.ts':
        'a stream that the server lets go is resumed when it said, and the result comes once',
      'eras/legacy-to-modern/http-server.test.ts': 'a call goes on when its stream breaks',
    },
  },
];
