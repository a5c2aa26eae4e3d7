/** What clients declare unless a test says otherwise. */
export const HOST_EXTENSIONS = {
  'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] },
  'com.example/host': { deep: [1, { b: null }], empty: {} },
};

/** A message on its way, as the client's transport saw it. */
export interface Traced {
  readonly from: 'client' | 'server';
  readonly message: TracedMessage;
}

export interface TracedMessage {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: Readonly<Record<string, unknown>>;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: (message: string | undefined) => void;
  readonly meta?: Readonly<Record<string, unknown>>;
}

export interface ToolResult {
  /** Of the text content, joined by line feeds. */
  readonly text: string;
  readonly isError: boolean;
  readonly structured: unknown;
  readonly meta: Readonly<Record<string, unknown>> | undefined;
}

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly nextCursor: string | undefined;
}

export type Era = 'legacy' | 'modern';

export interface ConnectOptions {
  readonly name: string;
  /** Default: whatever a server may ask for. */
  readonly capabilities?: Readonly<Record<string, object>>;
}

export type ListName = 'tools' | 'resources' | 'prompts';

/** Answers a question of the server; what it throws becomes the error. */
export type Answerer = (
  params: Readonly<Record<string, unknown>>,
) => Record<string, unknown> | Promise<Record<string, unknown>>;

/**
 * What scenarios do with a client, in terms of what it is for rather than of the messages of one era: a client of
 * another era or SDK joins the matrix by implementing this. Requests reject with an error that has `code` and `data`.
 */
export interface MatrixClient {
  /** Every message so far, both ways, in the order of this end. */
  readonly trace: readonly Traced[];
  /** What the SDK complained about. */
  readonly faults: readonly Error[];
  /** What it speaks; one that negotiates finds out. */
  readonly era: Era;
  serverInfo(): Readonly<Record<string, unknown>>;
  callTool(name: string, args?: Readonly<Record<string, unknown>>, options?: CallOptions): Promise<ToolResult>;
  list(list: ListName, cursor?: string): Promise<Page<{ readonly name: string }>>;
  listTemplates(): Promise<readonly { readonly uriTemplate: string }[]>;
  readResource(uri: string): Promise<readonly { readonly text?: string; readonly blob?: string }[]>;
  getPrompt(name: string, args?: Readonly<Record<string, string>>): Promise<readonly unknown[]>;
  complete(params: Readonly<Record<string, unknown>>): Promise<readonly string[]>;
  ping(): Promise<void>;
  /** Of the log messages of later calls. */
  setLevel(level: string): Promise<void>;
  /** From now on changes of all lists are told, as far as the client has to ask for that. */
  watchLists(): Promise<void>;
  subscribe(uri: string): Promise<void>;
  unsubscribe(uri: string): Promise<void>;
  rootsChanged(): Promise<void>;
  /** Any method, known to the SDK or not. */
  request(method: string, params?: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, unknown>>>;
  notify(method: string, params?: Readonly<Record<string, unknown>>): Promise<void>;
  /** From now on questions with this method are answered so. */
  answer(method: string, answerer: Answerer): void;
  /** Leaves as a polite client does. May be called twice. */
  close(): Promise<void>;
}

/** Messages of the server, the latest last. */
export function fromServer(client: MatrixClient, method?: string): readonly TracedMessage[] {
  return client.trace
    .filter(({ from, message }) => from === 'server' && (method === undefined || message.method === method))
    .map(({ message }) => message);
}
