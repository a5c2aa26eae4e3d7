import { SubscribedUris } from '../../mcp/vocabulary/subscribed-uris.ts';

interface Subscription<Client> {
  readonly clients: Set<Client>;
  /** The server has agreed. Until then each client asks it for itself. */
  isGranted: boolean;
}

/** Which clients subscribed to which resource; the server is told of the first and of the last of them. */
export class SubscriptionTable<Client> {
  readonly #byUri = new Map<string, Subscription<Client>>();
  readonly #ofClient = new Map<Client, SubscribedUris>();

  has(uri: string): boolean {
    return this.#byUri.has(uri);
  }

  isGranted(uri: string): boolean {
    return this.#byUri.get(uri)?.isGranted ?? false;
  }

  /** False: the client has as many as it may have. */
  add(uri: string, client: Client): boolean {
    const own = this.#ofClient.get(client) ?? new SubscribedUris();
    if (!own.add(uri)) return false;
    this.#ofClient.set(client, own);
    const subscription = this.#byUri.get(uri);
    if (subscription === undefined) this.#byUri.set(uri, { clients: new Set([client]), isGranted: false });
    else subscription.clients.add(client);
    return true;
  }

  /** What the server says to a subscription; of one that was given up meanwhile it says nothing. */
  setGranted(uri: string, isGranted: boolean): void {
    const subscription = this.#byUri.get(uri);
    if (subscription !== undefined) subscription.isGranted = isGranted;
  }

  /** True: that was the last one, the server can be told. */
  remove(uri: string, client: Client): boolean {
    const own = this.#ofClient.get(client);
    own?.delete(uri);
    if (own?.size === 0) this.#ofClient.delete(client);
    const subscription = this.#byUri.get(uri);
    if (subscription === undefined || !subscription.clients.delete(client) || subscription.clients.size > 0)
      return false;
    return this.#byUri.delete(uri);
  }

  /** The client leaves; returns the resources nobody is left for. */
  removeClient(client: Client): readonly string[] {
    return [...(this.#ofClient.get(client) ?? [])].filter((uri) => this.remove(uri, client));
  }

  uris(): readonly string[] {
    return [...this.#byUri.keys()];
  }

  /** All that subscribed to anything. */
  clients(): ReadonlySet<Client> {
    return new Set(this.#ofClient.keys());
  }

  /**
   * Whom an update of this resource concerns. Servers may report a part of what was subscribed to
   * [spec 2025-11-25 server/resources#subscriptions], so those who subscribed to something above it count too.
   */
  clientsFor(uri: string): ReadonlySet<Client> {
    const concerned = new Set<Client>();
    for (const [subscribed, { clients }] of this.#byUri) {
      if (!isPartOf(uri, subscribed)) continue;
      for (const client of clients) concerned.add(client);
    }
    return concerned;
  }
}

function isPartOf(uri: string, whole: string): boolean {
  return uri === whole || uri.startsWith(whole.endsWith('/') ? whole : `${whole}/`);
}
