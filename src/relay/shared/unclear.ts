import { BridgeError } from '../../errors.ts';

export const UNCLEAR = new BridgeError(
  'ERR_WIRE_MESSAGE',
  'This message can be read in several ways: a name occurs twice or in another case, or progressToken is neither a ' +
    'string nor a number. On a server shared by several clients that is refused.',
);
