/**
 * A list of what comes and goes with every call, in the order of arrival. Unlike in a Set, nothing is looked up to leave
 * it, and what has left is held by nothing; see CellMap for what a Set holds on to.
 */
export class PlaceList<Value> {
  /** Before the first place and after the last. */
  readonly #end = new Place<Value>();

  get isEmpty(): boolean {
    return this.#end.next === this.#end;
  }

  /** The only one, if there is exactly one. */
  get sole(): Value | undefined {
    const { next } = this.#end;
    return next.next === this.#end ? next.value : undefined;
  }

  /** The new last one; it leaves by itself. */
  add(value: Value): Place<Value> {
    return new Place(value, this.#end);
  }

  /** In their order. Nobody may leave meanwhile but the one that is visited. */
  *[Symbol.iterator](): Generator<Value, undefined> {
    for (let place = this.#end.next; place !== this.#end; ) {
      const { next } = place;
      yield place.value as Value;
      place = next;
    }
  }

  /** A copy: some leave while they are visited. */
  toArray(): Value[] {
    const values: Value[] = [];
    for (let place = this.#end.next; place !== this.#end; place = place.next) values.push(place.value as Value);
    return values;
  }

  /** The latest one that meets the condition. */
  findLast(isWanted: (value: Value) => boolean): Value | undefined {
    for (let place = this.#end.previous; place !== this.#end; place = place.previous) {
      if (isWanted(place.value as Value)) return place.value;
    }
    return undefined;
  }
}

/** One value's place in a list. */
export class Place<Value> {
  /** Undefined once it has left, and of the list's own end. */
  value: Value | undefined;
  previous: Place<Value>;
  next: Place<Value>;

  /** Before `end`, or one that stands alone. */
  constructor(value?: Value, end?: Place<Value>) {
    this.value = value;
    this.next = end ?? this;
    this.previous = end?.previous ?? this;
    this.previous.next = this;
    this.next.previous = this;
  }

  /** False: it has left before. */
  leave(): boolean {
    if (this.value === undefined) return false;
    this.previous.next = this.next;
    this.next.previous = this.previous;
    this.previous = this;
    this.next = this;
    this.value = undefined;
    return true;
  }
}
