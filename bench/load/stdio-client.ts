/** A client on the pipes of a process it was given. */
import type { Readable, Writable } from 'node:stream';
import { createLineSplitter } from '../server/lines.js';
import type { Client, Identity } from './client.ts';
import { Mailbox } from './mailbox.ts';
import { openMessageClient } from './message-client.ts';

export interface Pipes {
  readonly stdin: Writable;
  readonly stdout: Readable;
}

export function openStdioClient({ stdin, stdout }: Pipes, identity: Identity): Promise<Client> {
  const mailbox = new Mailbox();
  const split = createLineSplitter((line: Buffer) => {
    if (line.length > 0) mailbox.deliver(line);
  });
  stdout.on('data', split);
  stdout.on('end', () => mailbox.fail(new Error('the bridge closed its output')));
  stdin.on('error', (error) => mailbox.fail(error));
  const way = {
    head: () => '',
    tail: '\n',
    write: (bytes: Buffer) => void stdin.write(bytes),
    close: () => void stdin.end(),
  };
  return openMessageClient(way, mailbox, identity);
}
