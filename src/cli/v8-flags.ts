import { setFlagsFromString } from 'node:v8';

/** A value of a flag of V8, and the value that V8 gives it. */
export interface FlagValue {
  readonly value: number;
  readonly byDefault: number;
}

/**
 * The flags of V8 that this process has changed. V8 accepts saved code only while every flag has the value that it had
 * when the code was saved. Saved are the modules of Node, with the defaults, and the files of this program. Code is
 * therefore loaded and saved with the defaults: otherwise each start would compile again what it loads with a flag
 * changed.
 */
export class V8Flags {
  #changed = new Map<string, FlagValue>();

  set(name: string, flag: FlagValue): void {
    if (this.#changed.get(name)?.value === flag.value) return;
    write(name, flag.value);
    if (flag.value === flag.byDefault) this.#changed.delete(name);
    else this.#changed.set(name, flag);
  }

  /** Runs a function while all flags have their defaults. It may call this again, but may not set a flag. */
  withDefaults<Result>(run: () => Result): Result {
    const changed = this.#changed;
    if (changed.size === 0) return run();
    this.#changed = new Map();
    for (const [name, { byDefault }] of changed) write(name, byDefault);
    try {
      return run();
    } finally {
      for (const [name, { value }] of changed) write(name, value);
      this.#changed = changed;
    }
  }
}

function write(name: string, value: number): void {
  setFlagsFromString(`--${name}=${value}`);
}
