/** What the single executable runs: the program in one file. Its code is compiled when the executable is built. */
import { main } from '../../src/cli.ts';

void main();
