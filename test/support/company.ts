/** A company whose users log in at its identity provider, which vouches for them at the authorization server of a server. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { decodeJwt, type JWTPayload, UnsecuredJWT } from 'jose';
import { type Answer, type Fields, type LoginWorld, startLoginWorld } from './login-world.ts';

export const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
export const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
export const ID_JAG = 'urn:ietf:params:oauth:token-type:id-jag';
/** The clients that the bridge is at the identity provider, and at the authorization server. */
export const CLIENT_AT_PROVIDER = 'bridge-at-company';
export const CLIENT_AT_SERVER = 'bridge-at-server';

/** What each side does can be changed at any time. */
export class Company {
  readonly provider: LoginWorld;
  /** The server, and the authorization server whose tokens it takes. */
  readonly world: LoginWorld;
  /** Seconds for which an ID token lasts. */
  idTokenLife = 3600;
  /** The members of ID tokens, and of assertions, that are not as usual. */
  idToken: JWTPayload = {};
  assertion: JWTPayload = {};
  /** The answer of the identity provider to an exchange. */
  answerExchange: (asked: URLSearchParams, usual: Fields) => Answer = (_, body) => ({ status: 200, body });
  #given = 0;

  constructor(provider: LoginWorld, world: LoginWorld) {
    this.provider = provider;
    this.world = world;
    provider.metadata = { scopes_supported: ['openid', 'offline_access'], registration_endpoint: undefined };
    provider.answerToken = (asked, usual) =>
      asked.get('grant_type') === TOKEN_EXCHANGE
        ? this.#exchange(asked)
        : { status: 200, body: { ...usual, id_token: this.signIdToken() } };
    world.metadata = { registration_endpoint: undefined };
    world.answerToken = (asked, { access_token, token_type }) =>
      asked.get('grant_type') === JWT_BEARER && this.#isGood(asked)
        ? { status: 200, body: { access_token, token_type } }
        : { status: 400, body: { error: 'invalid_grant', error_description: 'the assertion is not good' } };
  }

  signIdToken(changes: JWTPayload = {}): string {
    this.#given += 1;
    const claims = { iss: this.provider.issuer, aud: CLIENT_AT_PROVIDER, sub: 'me', jti: `id-token-${this.#given}` };
    const expires = Math.floor(Date.now() / 1000) + this.idTokenLife;
    return new UnsecuredJWT({ ...claims, exp: expires, ...this.idToken, ...changes }).encode();
  }

  /** How often the identity provider was asked for an assertion. */
  get exchanges(): number {
    return this.provider.asked.filter(({ parameters }) => parameters.get('grant_type') === TOKEN_EXCHANGE).length;
  }

  #exchange(asked: URLSearchParams): Answer {
    const [audience, resource] = [asked.get('audience') ?? '', asked.get('resource') ?? ''];
    this.#given += 1;
    const claims = { iss: this.provider.issuer, aud: audience, sub: 'me', resource, client_id: CLIENT_AT_SERVER };
    const assertion = new UnsecuredJWT({ ...claims, jti: `id-jag-${this.#given}`, ...this.assertion }).encode();
    const usual = { access_token: assertion, issued_token_type: ID_JAG, token_type: 'N_A', expires_in: 300 };
    return this.answerExchange(asked, usual);
  }

  #isGood(asked: URLSearchParams): boolean {
    const { iss, aud, resource } = decodeJwt(asked.get('assertion') ?? '');
    return iss === this.provider.issuer && aud === this.world.issuer && resource === this.world.server;
  }
}

/** Gone when the test ends. */
export async function startCompany(t: ExecutionContext): Promise<Company> {
  return new Company(await startLoginWorld(t), await startLoginWorld(t));
}

/** Writes an ID token, as a program that is logged in at the identity provider would. */
export function writeIdToken(folder: string, idToken: string): string {
  const file = join(folder, 'id-token');
  writeFileSync(file, `${idToken}\n`);
  return file;
}
