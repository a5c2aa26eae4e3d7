/** Which clients subscribed to which resource; the server is told of the first and of the last of them. */
export class SubscriptionTable<Client> {
  readonly #byUri = new Map<string, Set<Client>>();

  has(uri: string): boolean {
    return this.#byUri.has(uri);
  }

  add(uri: string, client: Client): void {
    const clients = this.#byUri.get(uri);
    if (clients === undefined) this.#byUri.set(uri, new Set([client]));
    else clients.add(client);
  }

  /** True: that was the last one, the server can be told. */
  remove(uri: string, client: Client): boolean {
    const clients = this.#byUri.get(uri);
    if (clients === undefined || !clients.delete(client) || clients.size > 0) return false;
    return this.#byUri.delete(uri);
  }

  /** The client leaves; returns the resources nobody is left for. */
  removeClient(client: Client): readonly string[] {
    return [...this.#byUri.keys()].filter((uri) => this.remove(uri, client));
  }

  uris(): readonly string[] {
    return [...this.#byUri.keys()];
  }

  /**
   * Whom an update of this resource concerns. Servers may report a part of what was subscribed to
   * [spec 2025-11-25 server/resources#subscriptions], so those who subscribed to something above it count too.
   */
  clientsFor(uri: string): ReadonlySet<Client> {
    const exact = this.#byUri.get(uri);
    if (exact !== undefined) return exact;
    const above = new Set<Client>();
    for (const [subscribed, clients] of this.#byUri) {
      const isAbove = uri.startsWith(subscribed.endsWith('/') ? subscribed : `${subscribed}/`);
      if (isAbove) for (const client of clients) above.add(client);
    }
    return above;
  }
}
