/** The verb `info`, which describes this installation for a bug report. */
import { refuseInapplicable } from '../options/applicable.ts';
import { GivenOptions, readProcess } from '../options/given-options.ts';
import type { CommandLineOptions } from '../options/option-table.ts';
import { collectInfo, type InfoSurroundings } from './collect-info.ts';
import { renderInfo, renderInfoJson } from './render-info.ts';

/** Returns what `mcp-portage info` prints. Rejects with ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION. */
export async function showInfo(options: CommandLineOptions, around: InfoSurroundings): Promise<string> {
  const use = { verb: 'info', target: 'any', spelling: 'flags' } as const;
  refuseInapplicable(options, use);
  const given = new GivenOptions(readProcess(options, around), use);
  const info = await collectInfo(given, around);
  return given.get('json') ? renderInfoJson(info) : renderInfo(info);
}
