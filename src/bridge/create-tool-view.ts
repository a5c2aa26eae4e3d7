import type { ServerConfig } from '../config/server.ts';
import { compileToolChoice } from '../config/tool-choice.ts';
import type { Deps } from '../deps.ts';
import { nameOfPrincipal } from '../http/auth/callers.ts';
import { ToolView, type ToolViewOptions } from '../relay/tool-view.ts';

/** Creates the view that clients have of a server's tools; undefined: all tools are shown as they are. */
export function createToolView(server: Pick<ServerConfig, 'tools'>, { log }: Pick<Deps, 'log'>): ToolView | undefined {
  const { shapes } = server.tools;
  const isHidden = compileToolChoice(server.tools);
  if (isHidden === undefined && shapes.size === 0) return undefined;
  return new ToolView({ isHidden: isHidden ?? (() => false), shapes, isForCaller: chooseByCaller(server.tools), log });
}

/** Returns undefined if all callers see the same tools. */
function chooseByCaller({ shapes }: ServerConfig['tools']): ToolViewOptions['isForCaller'] {
  const chosen = new Map<string, ReadonlySet<string>>();
  for (const [name, { callers }] of shapes) if (callers !== undefined) chosen.set(name, new Set(callers));
  if (chosen.size === 0) return undefined;
  return (name, principal) => {
    const callers = chosen.get(name);
    if (callers === undefined) return true;
    // Headers and tokens that this server is shown, or another one of the aggregate, may have been added to the name.
    return principal !== undefined && callers.has(nameOfPrincipal(principal));
  };
}
