/** How a client gets to its server. */
export type Route =
  | { readonly kind: 'http'; readonly url: URL }
  | {
      readonly kind: 'stdio';
      readonly command: string;
      readonly args: readonly string[];
      /** Besides what the SDK hands on by itself. */
      readonly env: Readonly<Record<string, string>>;
    };

/** What the user of the client says when asked; a method that is not named has not been declared. */
export interface Answers {
  /** The content of an accepted form. Empty: the SDK fills in the defaults. */
  readonly elicitation?: Readonly<Record<string, boolean | string>>;
}

/** What a scenario does with a client, whatever its era. */
export interface ScenarioClient {
  listTools(): Promise<readonly { readonly name: string; readonly inputSchema: object }[]>;
  callTool(name: string, args?: Record<string, unknown>): Promise<unknown>;
  listResources(): Promise<readonly { readonly uri: string }[]>;
  readResource(uri: string): Promise<unknown>;
  listPrompts(): Promise<readonly { readonly name: string }[]>;
  getPrompt(name: string): Promise<unknown>;
  close(): Promise<void>;
}

export type ConnectClient = (route: Route, answers: Answers) => Promise<ScenarioClient>;
