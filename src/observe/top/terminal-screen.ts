/** Owns the terminal while the view is shown: its alternate screen, its cursor and its keyboard. */
import type { Clock } from '../../deps.ts';
import { type Key, readKeys } from './keys.ts';

/** A terminal for the view. */
export interface TopTerminal {
  readonly columns: () => number;
  readonly rows: () => number;
  readonly hasColors: boolean;
  readonly write: (text: string) => void;
  /** Undefined: stdin is not a terminal, so there are no keys. */
  readonly keyboard: Keyboard | undefined;
  /** Calls back when the terminal has another size. Returns the function that stops this, like `onExit`. */
  readonly onResize: (resized: () => void) => () => void;
  /** Calls back when the process exits, for whatever reason. */
  readonly onExit: (exiting: () => void) => () => void;
}

export interface Keyboard {
  /** Switches to raw mode, in which each key arrives at once and is not echoed. `ended`: there are no more keys. */
  readonly open: (typed: (text: string) => void, ended: () => void) => void;
  /** Leaves raw mode. */
  readonly close: () => void;
}

export interface ScreenEvents {
  readonly pressed: (key: Key) => void;
  readonly resized: () => void;
  /** The terminal is gone. */
  readonly ended: () => void;
}

/** Switches to the alternate screen without a cursor; LEAVE restores what was there before. */
const ENTER = '\u001b[?1049h\u001b[?25l';
const LEAVE = '\u001b[?25h\u001b[?1049l';
const TO_START = '\u001b[H';
const CLEAR_LINE = '\u001b[2K';
const CLEAR_BELOW = '\u001b[J';
/** Time after which an ESC is the key Esc. The rest of an arrow key follows at once, even from far away. */
const ESCAPE_MS = 50;

export class TerminalScreen {
  readonly #terminal: TopTerminal;
  readonly #clock: Clock;
  readonly #events: ScreenEvents;
  /** Functions that stop listening to the terminal. The list is empty before the first drawing and after the end. */
  #restores: (() => void)[] = [];
  #drawn: string | undefined;
  /** Input whose end has not arrived. */
  #unread = '';
  #stopWaiting: (() => void) | undefined;

  constructor(terminal: TopTerminal, clock: Clock, events: ScreenEvents) {
    this.#terminal = terminal;
    this.#clock = clock;
    this.#events = events;
  }

  /** Draws these lines, if they are not there already. The first call takes over the terminal. */
  draw(lines: readonly string[]): void {
    if (this.#drawn === undefined) this.#enter();
    // A line is cleared before it is written: after its last column, clearing would take its last character.
    const frame = TO_START + lines.map((line) => CLEAR_LINE + line).join('\r\n') + CLEAR_BELOW;
    if (frame === this.#drawn) return;
    this.#drawn = frame;
    this.#terminal.write(frame);
  }

  #enter(): void {
    const { write, keyboard, onResize, onExit } = this.#terminal;
    this.#restores = [
      onExit(() => this.close()),
      onResize(() => {
        // Terminals move or cut lines when they are resized, so nothing that was drawn counts.
        this.#drawn = '';
        this.#events.resized();
      }),
      () => write(LEAVE),
    ];
    write(ENTER);
    if (keyboard === undefined) return;
    this.#restores.push(() => keyboard.close());
    keyboard.open(
      (text) => this.#typed(text),
      () => this.#events.ended(),
    );
  }

  #typed(text: string): void {
    this.#stopWaiting?.();
    this.#stopWaiting = undefined;
    const { keys, rest } = readKeys(this.#unread + text);
    this.#unread = rest;
    if (rest !== '') this.#stopWaiting = this.#clock.after(ESCAPE_MS, () => this.#escaped());
    for (const key of keys) {
      // A key may have closed the screen.
      if (this.#restores.length === 0) return;
      this.#events.pressed(key);
    }
  }

  #escaped(): void {
    this.#unread = '';
    this.#stopWaiting = undefined;
    this.#events.pressed({ kind: 'escape' });
  }

  /** Leaves the terminal as it was. Further calls have no effect. */
  close(): void {
    const restores = this.#restores;
    this.#restores = [];
    this.#stopWaiting?.();
    for (const restore of restores.reverse()) restore();
  }
}
