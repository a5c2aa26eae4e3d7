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
    title: 'Skills (SEP-2640): `skills/list`, `skills/get`, `resources/directory/read`',
    outcomes: {
      'modern → legacy': translated('as calls; lists and entries get the hints on caching that they must have'),
      'legacy → modern': translated('as calls; the hints on caching stay'),
    },
    tests: { 'real-peers/extensions.test.ts': 'skillsPass' },
  },
  {
    title: 'MCP Apps (SEP-1865): views, `ui://` resources, who sees which tool',
    outcomes: {
      'modern → legacy': translated('as tools and resources; the server learns what the client can show'),
      'legacy → modern': translated('as tools and resources; the server learns what the client can show'),
    },
    tests: { 'real-peers/extensions.test.ts': 'appsPass' },
  },
  {
    title: 'Changes that an extension adds to the filter of `subscriptions/listen`',
    outcomes: {
      'modern → legacy': impossible(
        'which notifications its member of the filter stands for only the extension knows',
        'the acknowledgment leaves it out; what the server sends about it is logged at `debug`',
      ),
      'legacy → modern': impossible(
        'a legacy client has no words for a filter, and its members only the extension knows',
        'the server is not asked for them',
      ),
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
        'a client that declares the extension follows the task of the server; for any other the bridge waits for its result',
      ),
      'legacy → modern': translated('the bridge follows the task, and the client gets the plain result'),
    },
    tests: {
      'eras/modern-to-legacy/sdk-tasks.test.ts': 'a task is created, followed to its end, and canceled',
      'eras/modern-to-legacy/tasks.test.ts': 'a tool that runs only as a task is waited for',
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
        '−32042 becomes an `input_required`, and with consent the call is sent once more; a client that opens no URLs gets −32021',
      ),
      'legacy → modern': translated('the request gets the `elicitationId` that the revision of the client wants'),
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
      'modern → legacy': translated('the annotations are taken off the tools'),
      'legacy → modern': translated('the bridge sends the headers, and hides tools whose annotations are not valid'),
    },
    tests: {
      'eras/modern-to-legacy/calls.test.ts': 'a tool stays, without the annotation of parameters',
      'upstream/streamable-stateless/headers.test.ts': 'arguments go into the headers the tool names',
    },
  },
  {
    title: 'Results that older revisions do not know: audio, links, structured content that is no object',
    outcomes: {
      'modern → legacy': passes,
      'legacy → modern': translated(
        'blocks become others, and structured content is wrapped or taken off, as the revision wants',
      ),
    },
    tests: {
      'eras/legacy-to-modern/calls.test.ts':
        'output that is no object is wrapped, in the list and in what the tool answers',
    },
  },
  {
    title: 'A stream that breaks during a call',
    outcomes: {
      'modern → legacy': impossible(
        'the stream is the request of a modern client',
        'the server is told that the call is canceled, and the client has to call again; a stream of the server that breaks is resumed unseen',
      ),
      'legacy → modern': impossible(
        'the stream is the request at a modern server',
        'a client comes back for the rest as ever; when the stream of the server breaks, the client gets an error, as nobody can tell whether the tool has run',
      ),
    },
    tests: {
      'eras/modern-to-legacy/http-server.test.ts':
        'a stream that the server lets go is resumed when it said, and the result comes once',
      'eras/legacy-to-modern/http-server.test.ts': 'a call goes on when its stream breaks',
    },
  },
];
