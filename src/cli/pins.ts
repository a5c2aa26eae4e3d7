/** The verb `pin`, which shows the pins of tools and accepts changes. */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Logger } from 'pino';
import { BridgeError } from '../errors.ts';
import { acceptPins, type ChangedTool, waitingIn } from '../pins/accept.ts';
import { PinFile, readPins } from '../pins/pin-file.ts';
import type { Pins } from '../pins/pins.ts';
import { printableLines } from '../printable.ts';
import { quoteWord } from '../process/shown-arguments.ts';
import { refuseInapplicable } from './options/applicable.ts';
import { GivenOptions, readProcess } from './options/given-options.ts';
import type { CommandLineOptions } from './options/option-table.ts';
import type { RemoteSurroundings } from './parse/servers/remote.ts';
import { createSystemDeps } from './system-deps.ts';

export interface PinRequest {
  readonly options: CommandLineOptions;
  /** The tools to accept. Without `--accept`, the file to show. */
  readonly words: readonly string[];
}

/** Returns what `mcp-portage pin` prints. Rejects with ERR_CONFIG_OPTION, ERR_CONFIG_COMBINATION and ERR_CONFIG_PINS. */
export async function runPin({ options, words }: PinRequest, around: RemoteSurroundings, log: Logger): Promise<string> {
  const use = { verb: 'pin', target: 'any', spelling: 'flags' } as const;
  refuseInapplicable(options, use);
  const path = new GivenOptions(readProcess(options, around), use).get('accept');
  if (path === undefined) return show(words, around.cwd);
  checkFile(path);
  const accepted = await acceptPins(new PinFile(path, createSystemDeps(log)), words);
  if (accepted.length === 0) return `Nothing waits to be accepted in ${path}.\n`;
  return printableLines(`Accepted in ${path}:\n${accepted.map(describe).join('')}`);
}

function show(words: readonly string[], cwd: string): string {
  const [file, ...others] = words;
  if (file === undefined || others.length > 0) {
    throw new BridgeError(
      'ERR_CONFIG_OPTION',
      'pin shows one file with pins, or accepts tools that wait there, as in\n  mcp-portage pin pins.json\n  mcp-portage pin --accept pins.json',
    );
  }
  const path = resolve(cwd, file);
  checkFile(path);
  const pins = readPins(path);
  const waiting = waitingIn(pins);
  if (waiting.length === 0) return printableLines(`${count(pins)}Nothing waits to be accepted.\n`);
  const command = `mcp-portage pin --accept ${quoteWord(file)}`;
  return printableLines(
    `${count(pins)}Hidden, because they differ:\n${waiting.map(describe).join('')}To accept them all: ${command}\n`,
  );
}

/** A file that does not exist is a mistake here, and no file without pins. */
function checkFile(path: string): void {
  if (statSync(path, { throwIfNoEntry: false }) !== undefined) return;
  const message = `There is no file with pins at ${path}; --pin-tools of serve and connect creates it.`;
  throw new BridgeError('ERR_CONFIG_OPTION', message);
}

function count(pins: Pins): string {
  return [...pins].map(([server, { pinned }]) => `${server}: ${pinned.size} tools are pinned\n`).join('');
}

function describe({ server, tool, parts }: ChangedTool): string {
  const what = parts === undefined ? 'new' : `changed: ${parts.join(', ')}`;
  return `  ${tool} of ${server} (${what})\n`;
}
