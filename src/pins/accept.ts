import { BridgeError } from '../errors.ts';
import type { ToolPart } from '../mcp/classify/tool-definition.ts';
import type { PinFile } from './pin-file.ts';
import { acceptTools, differenceOf, type Pins, type WaitingTool } from './pins.ts';

/** A tool that waits to be accepted, or was accepted, with the parts that have changed. */
export interface ChangedTool extends WaitingTool {
  /** Undefined for a tool that has appeared since the server's tools were pinned. */
  readonly parts: readonly ToolPart[] | undefined;
}

/** Returns the tools that wait to be accepted. */
export function waitingIn(pins: Pins): readonly ChangedTool[] {
  return [...pins].flatMap(([server, { pinned, waiting }]) =>
    [...waiting].map(([tool, definition]) => {
      const parts = (['legacy', 'modern'] as const).flatMap((era) => {
        const digests = definition[era];
        const difference = digests && differenceOf(pinned.get(tool), era, digests);
        return difference?.kind === 'changed' ? difference.parts : [];
      });
      return { server, tool, parts: pinned.has(tool) ? [...new Set(parts)] : undefined };
    }),
  );
}

/**
 * Accepts tools as they were seen last, and resolves with them. Running processes go by that at their next decision.
 * Rejects with ERR_CONFIG_OPTION, and accepts nothing, if a tool does not wait, or waits at several servers.
 * @param named tools, each perhaps after its server and a slash; none for all that wait
 */
export async function acceptPins(file: PinFile, named: readonly string[]): Promise<readonly ChangedTool[]> {
  let accepted: readonly ChangedTool[] = [];
  await file.change((pins) => {
    const waiting = waitingIn(pins);
    accepted = named.length === 0 ? waiting : named.map((name) => choose(name, waiting, file.path));
    return accepted.length === 0 ? pins : acceptTools(pins, accepted);
  });
  return accepted;
}

function choose(name: string, waiting: readonly ChangedTool[], path: string): ChangedTool {
  const meant = waiting.filter(({ server, tool }) => tool === name || `${server}/${tool}` === name);
  const [first, second] = meant;
  if (first === undefined) {
    const others = waiting.map(({ tool }) => JSON.stringify(tool)).slice(0, 20);
    const there = others.length === 0 ? 'Nothing waits there' : `There wait ${others.join(', ')}`;
    throw new BridgeError(
      'ERR_CONFIG_OPTION',
      `No tool ${JSON.stringify(name)} waits to be accepted in ${path}. ${there}.`,
    );
  }
  if (second === undefined) return first;
  const names = meant.map(({ server, tool }) => JSON.stringify(`${server}/${tool}`)).join(' or ');
  throw new BridgeError(
    'ERR_CONFIG_OPTION',
    `${JSON.stringify(name)} waits at several servers in ${path}; accept ${names}.`,
  );
}
