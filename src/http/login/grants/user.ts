import type { UserGrant } from '../../../config/remote.ts';
import { BridgeError } from '../../../errors.ts';
import { authorizeInBrowser } from '../authorize-in-browser.ts';
import { CallbackListener } from '../callback-listener.ts';
import { findRegistration, identifyClient } from '../client-identity.ts';
import { authorizeDevice } from '../device-code.ts';
import { chooseWay } from '../discover.ts';
import { loginError } from '../login-error.ts';
import type { LoginClient, RegisteredLoginClient, StoredLogin } from '../login-store.ts';
import { patiently } from '../patience.ts';
import { limitScopes } from '../scopes.ts';
import { exchangeCode } from '../token-requests.ts';
import { type AskUser, conclude, contextOf, type GrantRequest } from './grant.ts';

/** Logs a user in, with a browser on this machine or with a code in any browser. */
export async function logInAsUser(request: GrantRequest, grant: UserGrant): Promise<StoredLogin> {
  const ask = chooseWay(grant, request.authorizationServer) === 'device-code' ? askForCode : askInBrowser;
  const login = await ask(request);
  if (login !== 'client unknown') return login;
  const again = await ask({ ...request, previous: undefined });
  if (again !== 'client unknown') return again;
  throw loginError(`${request.authorizationServer.issuer} does not know the client that it registered`, '');
}

interface IdentifiedClient {
  readonly client: LoginClient;
  /** The scopes that this client may ask for. */
  readonly asked: readonly string[];
}

/** @param callback the address that the browser returns to; undefined for a login with a code */
async function identify(request: GrantRequest, callback: string | undefined): Promise<IdentifiedClient> {
  const { authorizationServer, previous, scopes } = request;
  const client = await identifyClient({ ...request, callback });
  if (client.origin !== 'registered') return { client, asked: scopes };
  if (client !== findRegistration(previous, authorizationServer.issuer)) request.registered();
  return { client, asked: limitScopes(client.scopes, scopes) };
}

const askForCode: AskUser = async (request) => {
  const { authorizationServer, guard, previous, findNewerLogin, registrationFailed, deps, signal } = request;
  const { client, asked } = await identify(request, undefined);
  const outcome = await authorizeDevice({
    ...{ context: contextOf(request, client), scopes: asked, guard, findNewerLogin, clock: deps.clock, signal },
    show: request.showCode,
  });
  if (outcome.kind === 'other-process') return outcome.login;
  const isKnown = client === findRegistration(previous, authorizationServer.issuer);
  if (outcome.kind === 'refused' && outcome.isClientUnknown && isKnown) {
    registrationFailed(client.id);
    return 'client unknown';
  }
  return conclude(request, client, outcome);
};

const askInBrowser: AskUser = async (request) => {
  const { server, config, authorizationServer, parameters, guard, previous, findNewerLogin, askToPaste, deps, signal } =
    request;
  const registered = findRegistration(previous, authorizationServer.issuer);
  const { listener, callback } = await listen(registered, config.callback);
  /** True while the authorization server may have lost the registration and may be showing an error to the user. */
  let isDoubtful = false;
  try {
    const { client, asked } = await identify(request, callback);
    const openBrowser = (start: URL): void => {
      isDoubtful = client === registered;
      request.openBrowser(start);
    };
    const outcome = await authorizeInBrowser({
      ...{ server, authorizationServer, clientId: client.id, listener, callback, parameters, findNewerLogin, signal },
      ...{ guard, openBrowser, askToPaste, clock: deps.clock, log: deps.log },
      scopes: asked,
      assumesPkce: config.assumesPkce,
    });
    isDoubtful &&= outcome.kind === 'refused' && CLIENT_ERRORS.has(outcome.code);
    if (outcome.kind === 'refused') throw outcome.error;
    if (outcome.kind === 'other-process') return outcome.login;
    const context = contextOf(request, client);
    const answer = await patiently(() => exchangeCode(context, outcome.grant, asked), { ...deps, signal }).catch(
      (thrown: unknown) => {
        throw signal.aborted ? thrown : afterUser(thrown);
      },
    );
    isDoubtful = client === registered && answer.kind === 'refused' && answer.isClientUnknown;
    return isDoubtful ? 'client unknown' : conclude(request, client, answer);
  } finally {
    if (isDoubtful && registered !== undefined) request.registrationFailed(registered.id);
    listener.close();
  }
};

/** [RFC 6749 4.1.2.1] The errors of an authorization server that no longer knows the client. */
const CLIENT_ERRORS: ReadonlySet<string> = new Set(['invalid_client', 'unauthorized_client']);

/** Makes a failure permanent once the user has been asked, because a retry would open another page. */
function afterUser(thrown: unknown): unknown {
  return thrown instanceof BridgeError ? loginError(thrown.message, 'The next call asks the user again.') : thrown;
}

interface OpenCallback {
  readonly listener: CallbackListener;
  readonly callback: string;
}

/**
 * Starts the listener. Many authorization servers require the exact address that was registered, so its port is reused
 * if it is free.
 */
async function listen(registered: RegisteredLoginClient | undefined, configured: URL): Promise<OpenCallback> {
  const former = registered?.callback;
  if (former !== undefined && URL.canParse(former) && isSameButPort(new URL(former), configured)) {
    try {
      return await listenAt(new URL(former));
    } catch (thrown) {
      if (!(thrown instanceof BridgeError)) throw thrown;
    }
  }
  return listenAt(configured);
}

async function listenAt(address: URL): Promise<OpenCallback> {
  const listener = new CallbackListener(address);
  return { listener, callback: (await listener.listen()).href };
}

function isSameButPort(former: URL, configured: URL): boolean {
  const isSamePlace = former.hostname === configured.hostname && former.pathname === configured.pathname;
  return isSamePlace && (configured.port === '0' || configured.port === former.port);
}
