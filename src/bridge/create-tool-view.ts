import type { ServerConfig } from '../config/server.ts';
import { compileToolChoice } from '../config/tool-choice.ts';
import type { Deps } from '../deps.ts';
import { nameOfPrincipal } from '../http/auth/callers.ts';
import { ToolView, type ToolViewOptions } from '../relay/tool-view.ts';

/** Creates the view that clients have of a server's tools; undefined: all tools are shown as they are. */
export function createToolView(
  server: Pick<ServerConfig, 'tools' | 'mapHeaders' | 'remote'>,
  { log }: Pick<Deps, 'log'>,
): ToolView | undefined {
  const { shapes } = server.tools;
  const isHidden = compileToolChoice(server.tools);
  if (isHidden === undefined && shapes.size === 0) return undefined;
  return new ToolView({ isHidden: isHidden ?? (() => false), shapes, isForCaller: chooseByCaller(server), log });
}

/** Returns undefined if all callers see the same tools. */
function chooseByCaller({
  tools: { shapes },
  mapHeaders,
  remote,
}: Pick<ServerConfig, 'tools' | 'mapHeaders' | 'remote'>): ToolViewOptions['isForCaller'] {
  const chosen = new Map<string, ReadonlySet<string>>();
  for (const [name, { callers }] of shapes) if (callers !== undefined) chosen.set(name, new Set(callers));
  if (chosen.size === 0) return undefined;
  // Only on such a server, a principal is more than the name with which the caller was admitted.
  const isMapped = mapHeaders.length > 0 || remote.exchange !== undefined;
  return (name, principal) => {
    const callers = chosen.get(name);
    if (callers === undefined) return true;
    return principal !== undefined && callers.has(isMapped ? nameOfPrincipal(principal) : principal);
  };
}
