/** Parses which tools of a server clients see, and how: from options, and from `portage.tools` in a file. */
import type { AccessConfig } from '../../../config/access.ts';
import { compileToolChoice, type ToolChoice, type ToolShape } from '../../../config/tool-choice.ts';
import { BridgeError } from '../../../errors.ts';
import type { WrittenTool } from '../../config-file/config-file.ts';
import type { GivenOptions } from '../../options/given-options.ts';
import { principalOf, refuseUnauthenticated } from '../listener/named-callers.ts';

interface ToolsRequest {
  readonly given: GivenOptions;
  /** The tools under `portage.tools` in the entry of the server. */
  readonly written: ReadonlyMap<string, WrittenTool>;
  readonly access: AccessConfig;
}

/**
 * Options override what an entry says of the same tool. Throws ERR_CONFIG_COMBINATION if two tools would have one name,
 * or callers have none.
 */
export function parseTools({ given, written, access }: ToolsRequest): ToolChoice {
  const shapes = new Map<string, ToolShape>();
  for (const [own, { name, title, description, isHidden, callers, place }] of written) {
    if (callers !== undefined && access.auth === undefined) {
      throw refuseUnauthenticated(given, { place: place.text, key: 'callers', use: 'use this tool' });
    }
    const principals = callers?.map((caller) => principalOf(caller, access));
    shapes.set(own, { name, title, description, isHidden, callers: principals });
  }
  for (const [own, name] of textsOf('renameTool', given)) shapes.set(own, { ...(shapes.get(own) ?? PLAIN), name });
  for (const [own, description] of textsOf('describeTool', given)) {
    shapes.set(own, { ...(shapes.get(own) ?? PLAIN), description });
  }
  const tools = { include: given.get('includeTool'), exclude: given.get('excludeTool'), shapes };
  refuseEqualNames(tools, (own) => written.get(own)?.place.text ?? given.placeOf('renameTool'));
  return tools;
}

const PLAIN: ToolShape = {
  name: undefined,
  title: undefined,
  description: undefined,
  isHidden: false,
  callers: undefined,
};

/** Throws ERR_CONFIG_COMBINATION if the option has two texts for one tool. */
function textsOf(option: 'renameTool' | 'describeTool', given: GivenOptions): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const [name, text] of given.get(option)) {
    if (texts.has(name)) {
      throw excluded(`${given.placeOf(option)} names the tool ${show(name)} twice; leave one of them out.`);
    }
    texts.set(name, text);
  }
  return texts;
}

/**
 * Throws ERR_CONFIG_COMBINATION if two tools would be shown by one name. Names that only the server knows are compared
 * when it lists its tools.
 */
function refuseEqualNames(tools: ToolChoice, placeOf: (own: string) => string): void {
  const isHidden = compileToolChoice(tools);
  const ownNames = new Map<string, string>();
  for (const [own, { name = own }] of tools.shapes) {
    if (isHidden?.(own) === true) continue;
    const other = ownNames.get(name);
    if (other !== undefined) {
      throw excluded(
        `${placeOf(own)}: the tools ${show(other)} and ${show(own)} would both be called ${show(name)}; choose another name for one of them, or hide it.`,
      );
    }
    ownNames.set(name, own);
  }
}

function show(name: string): string {
  return JSON.stringify(name.slice(0, 128));
}

function excluded(message: string): BridgeError {
  return new BridgeError('ERR_CONFIG_COMBINATION', message);
}
