import { oneOf, seeded } from '../support/seeded.ts'

/** Random numbers that a seed decides. */
export class Random {
  /** Returns a number from 0 up to 1. */
  readonly next: () => number

  constructor(seed: number) {
    this.next = seeded(seed)
  }

  /** Makes another generator, so that what draws from one does not change what another draws. */
  fork(): Random {
    return new Random(this.next() * 4_294_967_296)
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  /** Returns a number from `least` up to `most`. */
  between(least: number, most: number): number {
    return least + this.next() * (most - least)
  }

  /** Returns a whole number from `least` to `most`, both included. */
  whole(least: number, most: number): number {
    return Math.floor(this.between(least, most + 1))
  }

  pick<T>(items: readonly T[]): T {
    return oneOf(this.next, items)
  }

  uuid(): string {
    const hex = Array.from({ length: 32 }, () => this.whole(0, 15).toString(16)).join('')
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  }
}
