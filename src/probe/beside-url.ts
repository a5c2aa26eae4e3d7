/** Where else on the same origin a server may be whose URL answers 404. */
import type { RemoteConfig } from '../config.ts';
import { showUrl } from '../http/shown-url.ts';
import type { Findings } from './findings.ts';
import { TRANSPORT_NAMES } from './report.ts';
import { showTarget } from './shown-target.ts';

const NOT_FOUND = 404;
const USUAL = ['mcp', 'sse'] as const;

/** Nothing works, and not for want of credentials: nobody is at this path. */
export function looksLost({ offers, authorization, steps }: Findings): boolean {
  const isUsable = authorization !== undefined || offers.some(({ works }) => works);
  return !isUsable && steps.steps.some(({ status }) => status === NOT_FOUND);
}

/** The usual paths beside the one that was given, below it, and at the top; with its query. */
export function placesBeside(url: URL): readonly URL[] {
  const path = url.pathname.replace(/\/+$/, '');
  const parent = path.slice(0, Math.max(0, path.lastIndexOf('/')));
  const below = USUAL.some((name) => path.endsWith(`/${name}`)) ? [] : [path];
  const folders = url.pathname.endsWith('/') ? [...below, parent] : [parent, ...below];
  const paths = new Set([...folders, ''].flatMap((folder) => USUAL.map((name) => `${folder}/${name}`)));
  paths.delete(path);
  return [...paths].map((pathname) => Object.assign(new URL(url), { pathname }));
}

export interface Beside {
  readonly url: URL;
  /** What was found there. */
  readonly there: Findings;
  /** The findings about the URL that was given. */
  readonly findings: Findings;
  readonly remote: RemoteConfig;
}

/** True: a server is there, and has been told of. */
export function tellWhatIsBeside({ url, there, findings, remote }: Beside): boolean {
  const spoken = there.offers
    .filter(({ works }) => works)
    .map(({ transport, era }) => `${TRANSPORT_NAMES[transport]}, ${era}`);
  const { authorization } = there;
  if (spoken.length === 0 && authorization === undefined) return false;
  const what =
    spoken.length > 0 ? `speaks MCP: ${spoken.join('; ')}` : `asks for authorization (${authorization?.status})`;
  const command = `mcp-portage probe ${showTarget({ kind: 'url', url }, remote)}`;
  findings.problem(
    `Nothing is at this path (${NOT_FOUND}), but ${showUrl(url)} ${what}. For a report on it: ${command}`,
  );
  return true;
}
