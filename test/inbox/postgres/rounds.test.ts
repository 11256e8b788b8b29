import fc from 'fast-check'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type Round, Rounds } from '../../../src/inbox/postgres/claim/rounds.ts'

/** The number of events that a claim examines, and its maximum. */
const windowSize = 6
const limit = 2

/** The number of events of a media item at which this process claims no more of them. */
const crowd = 2

interface ModelEvent {
  readonly id: number
  readonly media: string
  state: 'waiting' | 'here' | 'elsewhere' | 'handled'
}

/** Events in memory, from which this process claims as from Postgres, and another one as well. */
class Model {
  readonly events: ModelEvent[] = []
  readonly #rounds = new Rounds()
  now = 0
  /** The time that the next claim takes, in ms. Later ones take 10 ms. */
  tookMs = 10

  accept(media: string): void {
    this.events.push({ id: this.events.length + 1, media, state: 'waiting' })
  }

  finish(state: 'here' | 'elsewhere', media?: string): void {
    const event = this.#first((each) => each.state === state && each.media === (media ?? each.media))
    if (event) event.state = 'handled'
  }

  /** The other process claims the first waiting event of a media item that no process has. */
  claimElsewhere(media: string): void {
    if (this.#has(media, 'here') || this.#has(media, 'elsewhere')) return
    const event = this.#first((each) => each.state === 'waiting' && each.media === media)
    if (event) event.state = 'elsewhere'
  }

  /** Claims until there seems to be no more, as a process does when it is woken up. */
  wake(): void {
    const until = this.now + 600_000
    while (this.#claim()) expect(this.now, 'the end of the claims').toBeLessThan(until)
  }

  get nextInMs(): number {
    return this.#rounds.nextInMs
  }

  #claim(): boolean {
    const low = this.#first(({ state }) => state === 'waiting')?.id ?? this.events.length
    const marks = { event: `${low}`, due: '', claim: '', committed: '', owners: '' }
    const media = new Set(this.events.map((event) => event.media))
    const crowded = [...media].filter((each) => this.#count(each, 'here') >= crowd)
    const round = this.#rounds.begin(marks, crowded)
    const without = new Set([...crowded, ...round.blocked])
    const examined = this.events
      .filter(({ id, state }) => id >= Number(round.event) && state !== 'handled')
      .slice(0, windowSize)
    const chosen = examined
      .filter((each) => each.state === 'waiting' && !without.has(each.media) && !this.#has(each.media, 'elsewhere'))
      .slice(0, limit)
    for (const event of chosen) {
      const isEarlier = (each: ModelEvent) => each.id < event.id && each.media === event.media
      expect(this.events.filter((each) => isEarlier(each) && each.state === 'waiting')).toEqual([])
      event.state = 'here'
    }
    return this.#end(round, examined, chosen)
  }

  #end(round: Round, examined: readonly ModelEvent[], chosen: readonly ModelEvent[]): boolean {
    const tookMs = this.tookMs
    this.now += tookMs
    this.tookMs = 10
    const isFull = chosen.length === limit
    const last = isFull ? chosen.at(-1) : examined[windowSize - 1]
    const blocked = examined.filter(({ id, state }) => state === 'waiting' && id <= Number(last?.id))
    const next = { event: `${last?.id ?? this.events.length}`, due: '' }
    const hasMore = this.#rounds.end(round, {
      next,
      hasMore: last !== undefined,
      blocked: blocked.map(({ media }) => media),
      isFull,
      tookMs,
    })
    return isFull || hasMore
  }

  #first = (is: (event: ModelEvent) => boolean) => this.events.find(is)
  #count = (media: string, state: ModelEvent['state']) =>
    this.events.filter((each) => each.media === media && each.state === state).length
  #has = (media: string, state: ModelEvent['state']) => this.#count(media, state) > 0
}

let model = new Model()
beforeEach(() => void vi.spyOn(performance, 'now').mockImplementation(() => model.now))
afterEach(() => vi.restoreAllMocks())

const media = fc.constantFrom('hot', 'hot', 'hot', 'a', 'b', 'c', 'd', 'e')
const step = fc.oneof(
  media.map((of) => (model: Model) => model.accept(of)),
  media.map((of) => (model: Model) => model.claimElsewhere(of)),
  fc.constantFrom<'here' | 'elsewhere'>('here', 'elsewhere').map((state) => (model: Model) => model.finish(state)),
  fc.integer({ min: 0, max: 60 }).map((ms) => (model: Model) => {
    model.now += ms
    model.wake()
  }),
)

test('Rounds let a process claim every event, and those of each media item in order', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 200 }), (steps) => {
      model = new Model()
      for (const run of steps) run(model)
      // The other process handles nothing more than what it has.
      while (model.events.some(({ state }) => state === 'elsewhere')) model.finish('elsewhere')
      for (let wakes = 0; model.events.some(({ state }) => state !== 'handled'); wakes++) {
        expect(wakes).toBeLessThan(2_000)
        model.now += 1_000
        model.wake()
        model.finish('here')
      }
    }),
    { numRuns: 300 },
  )
})

/** Lets the other process keep the first of many events of a media item. */
function beginHot(): void {
  model = new Model()
  for (let index = 0; index < 100; index++) model.accept('hot')
  model.claimElsewhere('hot')
  model.wake()
}

test('Rounds claim what arrives behind the events of another process, and rarely examine the first events again', () => {
  beginHot()
  const begunAt = model.now
  for (let index = 0; index < 50; index++) {
    model.accept(`other ${index}`)
    model.wake()
    expect(model.events.at(-1)?.state).toBe('here')
    model.finish('here')
  }
  // The claims of these events take 500 ms. If each followed one of the first events, they would take twice as long.
  expect(model.now - begunAt).toBeLessThan(800)
})

test('Rounds find an event amid those of another process as soon as the earlier one of its media item has ended', () => {
  beginHot()
  for (const media of ['a', 'a']) model.accept(media)
  model.claimElsewhere('a')
  for (let index = 0; index < 100; index++) model.accept('hot')
  model.wake()
  model.finish('elsewhere', 'a')
  for (let wakes = 0; model.events.every(({ state }) => state !== 'here'); wakes++) {
    expect(wakes).toBeLessThan(200)
    model.now += Math.min(model.nextInMs, 1_000)
    model.wake()
  }
  expect(model.events.filter(({ state }) => state === 'here').map(({ media }) => media)).toEqual(['a'])
})

test('Rounds rest for a second at most, although the network held a claim up', () => {
  model = new Model()
  model.tookMs = 2_000
  for (let index = 0; index < 100; index++) model.accept('hot')
  model.claimElsewhere('hot')
  model.wake()
  // It was woken up while the first events rested.
  model.wake()
  expect(model.nextInMs).toBeLessThanOrEqual(1_000)
})
