/** What the single executable runs: the program in one file. Its code is compiled when the executable is built. */
import { main } from '../../src/cli.ts';

// Compiled code is kept nowhere: it is in the executable.
void main(() => undefined);
