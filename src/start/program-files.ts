/** Loads the files of the program as CommonJS modules, with compiled code of earlier starts where there is some. */
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Script } from 'node:vm';
import { crc32 } from 'node:zlib';
import { type CodeFile, findCodeFile } from './code-file.ts';

/** Number of runs that store the compiled code again, because later runs use functions that the first one did not. */
const GENERATIONS = 4;

/** The wrapper of Node around CommonJS modules. */
const WRAPPER = ['(function (exports, require, module, __filename, __dirname) { ', '\n});'] as const;

type Wrapped = (
  exports: unknown,
  require: (name: string) => unknown,
  module: LoadedModule,
  path: string,
  directory: string,
) => void;

interface LoadedModule {
  exports: unknown;
}

interface LoadedFile {
  readonly module: LoadedModule;
  readonly script: Script;
  /** Undefined if compiled code is not to be stored. */
  readonly codeFile: CodeFile | undefined;
  /** The number of runs that have stored the compiled code of this one; 0 if it was compiled anew. */
  readonly generation: number;
}

/** A file of the program as it was built. */
export interface BuiltFile {
  /** SHA-256 in hexadecimal digits. */
  readonly digest: string;
  /** CRC-32, which is checked each time the file is loaded. */
  readonly checksum: number;
}

export interface ProgramFilesOptions {
  readonly directory: string;
  /** The files of the program by their names. */
  readonly built: Readonly<Record<string, BuiltFile>>;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

export class ProgramFiles {
  readonly #options: ProgramFilesOptions;
  readonly #loaded = new Map<string, LoadedFile>();
  #around: <Result>(load: () => Result) => Result = (load) => load();

  constructor(options: ProgramFilesOptions) {
    this.#options = options;
  }

  /** The `require` of the files: loads a file of the program, or a module of Node or of another package. */
  readonly load = (name: string): unknown => {
    const loaded = this.#loaded.get(name);
    if (loaded !== undefined) return loaded.module.exports;
    return this.#around(() => (name.startsWith('./') ? this.#loadFile(name).module.exports : require(name)));
  };

  loadInside(around: <Result>(load: () => Result) => Result): void {
    this.#around = around;
  }

  /** Stores the compiled code of the loaded files for the next start. */
  keepCompiledCode(): void {
    for (const { codeFile, generation, script } of this.#loaded.values()) {
      if (generation < GENERATIONS) codeFile?.write({ code: script.createCachedData(), generation: generation + 1 });
    }
  }

  #loadFile(name: string): LoadedFile {
    const { directory, built, argv, env } = this.#options;
    const path = join(directory, name);
    const file = built[basename(name)];
    if (file === undefined) throw new Error(`${name} is no file of the program`);
    const text = readUnchanged(path, file);
    const codeFile = findCodeFile({ file: basename(name), argv, env, digest: file.digest });
    const kept = codeFile?.read();
    const source = WRAPPER.join(text);
    const script = new Script(source, { filename: path, cachedData: kept?.code });
    const generation = kept === undefined || script.cachedDataRejected ? 0 : kept.generation;
    const loaded: LoadedFile = { module: { exports: {} }, script, codeFile, generation };
    this.#loaded.set(name, loaded);
    const run = script.runInThisContext() as Wrapped;
    run(loaded.module.exports, this.load, loaded.module, path, directory);
    return loaded;
  }
}

/**
 * Reads a file of the program. A file that was replaced since the start, as by an upgrade, would not fit the files that
 * are loaded already.
 */
function readUnchanged(path: string, { checksum }: BuiltFile): string {
  let bytes: Buffer | undefined;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    throw new Error(replaced(path), { cause });
  }
  if (crc32(bytes) !== checksum) throw new Error(replaced(path));
  // Outside of comments the file is ASCII: esbuild escapes everything except regular expressions, which a test checks.
  return bytes.toString('latin1');
}

function replaced(path: string): string {
  return `${path} is missing, or another one than when mcp-portage was started, as after an upgrade; restart mcp-portage.`;
}
