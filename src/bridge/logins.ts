/** Runs the verbs `login` and `logout`: logs in ahead of time, lists logins, and deletes them. */
import type { ServerConfig } from '../config/server.ts';
import type { Config } from '../config.ts';
import type { Deps } from '../deps.ts';
import { BridgeError } from '../errors.ts';
import type { AskToPaste } from '../http/login/authorize-in-browser.ts';
import { showUrl } from '../http/shown-url.ts';
import { handshakeUrlOf } from '../http/websocket/url.ts';
import { CLIENT_INFO } from '../version.ts';

/** The user at the terminal. */
export interface LoginTerminal {
  /** On stderr. */
  write(text: string): void;
  /** Calls back with each line that is entered. Returns the function that stops this. */
  onLine(entered: (line: string) => void): () => void;
}

export interface LoginJob {
  readonly verb: 'login' | 'logout';
  readonly config: Config;
  readonly terminal: LoginTerminal;
  readonly signal: AbortSignal;
}

/** Returns a list of the logins in this directory, to be printed. */
export async function listLogins(stateDirectory: string | undefined): Promise<string> {
  return (await import('../http/login/list-logins.ts')).listLogins(stateDirectory);
}

/** Logs in at each server, or out, and returns what to print. Rejects with the BridgeError of the first that fails. */
export async function changeLogins({ verb, config, terminal, signal }: LoginJob, deps: Deps): Promise<string> {
  const lines: string[] = [];
  for (const server of config.servers) {
    lines.push(await changeLogin(verb, server, { terminal, signal, deps }));
  }
  return lines.map((line) => `${line}\n`).join('');
}

interface LoginContext {
  readonly terminal: LoginTerminal;
  readonly signal: AbortSignal;
  readonly deps: Deps;
}

async function changeLogin(
  verb: LoginJob['verb'],
  { target, remote }: ServerConfig,
  { terminal, signal, deps }: LoginContext,
): Promise<string> {
  const config = remote.login;
  if (target.kind !== 'url' || config === undefined) {
    const why = target.kind === 'url' ? 'this one is shown a token of yours, or none at all' : 'this one has no URL';
    throw new BridgeError('ERR_CONFIG_COMBINATION', `${verb} is for a server at a URL that users log in to; ${why}.`);
  }
  const server = handshakeUrlOf(target.url);
  const userAgent = `${CLIENT_INFO.name}/${CLIENT_INFO.version}`;
  if (verb === 'login') {
    const { logIn } = await import('../http/login/log-in.ts');
    const hasBrowser = config.browser !== undefined && config.grant === 'authorization-code';
    const askToPaste = hasBrowser ? undefined : pasteInto(terminal);
    const outcome = await logIn({ server, config, remote, userAgent, askToPaste, deps, signal });
    if (outcome === 'unasked') return `The server at ${showUrl(server)} asks for no login.`;
    return `Logged in to ${showUrl(server)}.`;
  }
  const [{ logOut }, { HttpClient }] = await Promise.all([
    import('../http/login/log-out.ts'),
    import('../http/client/client.ts'),
  ]);
  const { tls, proxyEnv } = remote;
  const http = new HttpClient({
    ...{ headers: new Map(), bearerTokenFile: undefined, credentials: undefined, tls, proxyEnv, socketPath: undefined },
    ...{ userAgent, clock: deps.clock },
  });
  try {
    const outcome = await logOut({ server, config, http, deps, signal });
    return describeEnd(showUrl(server), outcome);
  } finally {
    http.close();
  }
}

function describeEnd(server: string, outcome: Awaited<ReturnType<typeof import('../http/login/log-out.ts').logOut>>) {
  if (outcome.kind === 'none') return `There is no login for ${server}.`;
  const { issuer } = outcome;
  switch (outcome.kind) {
    case 'revoked':
      return `Logged out of ${server}; ${issuer} has revoked the tokens.`;
    case 'forgotten':
      return `Logged out of ${server}. ${issuer} was not told: no place for that is known.`;
    case 'not-revoked':
      return `Logged out of ${server}, but ${issuer} has not revoked the tokens, which last until they expire.`;
  }
}

function pasteInto(terminal: LoginTerminal): AskToPaste {
  return ({ page, callback }, entered) => {
    terminal.write(
      `\nOr open this page in a browser of another machine:\n\n${page.href}\n\nAt the end it goes to ${callback}, and cannot load that. Copy the whole address from its address bar, paste it here, and press Enter:\n`,
    );
    return terminal.onLine((line) => {
      const text = line.trim();
      if (text === '') return;
      if (entered(text) === 'ignored') {
        terminal.write(`This is not the address at which this login ends; it begins with ${callback}?\n`);
      }
    });
  };
}
