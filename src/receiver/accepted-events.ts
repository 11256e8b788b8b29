import type { JsonObject } from '../events/json.ts'
import type { MediaEvent } from '../events/media-service/catalogue.ts'
import type { AnySender } from '../events/sender.ts'

/** Events remembered. */
const maxEvents = 1_000

/** Fields told apart per event. If it has more, all share one number. */
const maxFields = 32

/** Names remembered: a sender can make up others forever. */
const maxNames = 255

/**
 * Remembers the fields of the newest events, as numbers: events that live as long as 1,000 deliveries would cost each
 * delivery two copies by the garbage collector.
 */
export class AcceptedEvents {
  readonly #sender: AnySender
  readonly #hasKeyFunction: boolean
  /** Ring of keys, and for each the numbers of its fields: none if it is exempt from comparison. */
  readonly #keys = new Array<string>(maxEvents).fill('')
  readonly #fields = new Int32Array(maxEvents * maxFields)
  #next = 0
  /** Ids from 1. A name without one has the id 0. */
  readonly #ids = new Map<string, number>()
  readonly #current = new Int32Array(maxFields)

  /** @param hasKeyFunction true if `eventKey` may return anything, also what looks like a derived key */
  constructor(sender: AnySender, hasKeyFunction: boolean) {
    this.#sender = sender
    this.#hasKeyFunction = hasKeyFunction
  }

  remember(event: MediaEvent): void {
    // A look-up's payload is your own.
    if (event.source === 'lookup') this.exempt(event.key)
    else this.#remember(event.key, this.#comparable(event), this.#ignored(event))
  }

  /** Makes {@link differing} find no difference. */
  exempt(key: string): void {
    this.#remember(key, {}, [])
  }

  #remember(key: string, fields: JsonObject, ignored: readonly string[]): void {
    this.#read(fields, ignored)
    this.#keys[this.#next] = key
    this.#fields.set(this.#current, this.#next * maxFields)
    this.#next = (this.#next + 1) % maxEvents
  }

  /** Names the fields that differ; `''` if the name is not known. `undefined`: the event is not remembered. */
  differing(event: MediaEvent): readonly string[] | undefined {
    const remembered = this.#find(event.key)
    if (remembered === undefined || remembered[0] === 0) return remembered && []
    this.#read(this.#comparable(event), this.#ignored(event))
    const differing = [...difference(remembered, this.#current), ...difference(this.#current, remembered)]
    const names = differing.length > 0 ? ['', ...this.#ids.keys()] : []
    return [...new Set(differing.map((each) => names[each >>> 24] as string))]
  }

  #comparable(event: MediaEvent): JsonObject {
    const { principal } = event
    const fields = this.#sender.comparable(event)
    return principal === undefined ? fields : { ...fields, principal: [principal, fields['principal']] }
  }

  /** A key derived from the payload already says that some fields are equal. Hashing them would cost each delivery. */
  #ignored({ key, format, principal }: MediaEvent): readonly string[] {
    const isDerived = !this.#hasKeyFunction && principal === undefined && key.startsWith('[') && format === 'flat'
    return isDerived ? this.#sender.keyed : this.#sender.varying
  }

  /** Each field becomes the id of its name (8 bits) and a hash of its value (24 bits), never 0. */
  #read(fields: JsonObject, ignored: readonly string[]): void {
    const numbers = this.#current.fill(0)
    let [count, sum] = [0, 0]
    for (const name in fields) {
      const value = fields[name]
      // Absent, as for the parser.
      if (value === undefined || value === null || value === '' || ignored.includes(name)) continue
      const id = this.#assignId(name)
      const number = (id << 24) | (fingerprint(value, id === 0 ? hashText(name) : id) & 0xff_ffff) || 1
      if (count < maxFields) numbers[count] = number
      sum = (sum + number) & 0xff_ffff
      count++
    }
    if (count > maxFields) numbers.fill(0)[0] = sum || 1
  }

  #assignId(name: string): number {
    const known = this.#ids.get(name)
    if (known !== undefined) return known
    if (this.#ids.size === maxNames) return 0
    this.#ids.set(name, this.#ids.size + 1)
    return this.#ids.size
  }

  /** Returns the newest with that key. */
  #find(key: string): Int32Array | undefined {
    const before = this.#next === 0 ? -1 : this.#keys.lastIndexOf(key, this.#next - 1)
    const index = before === -1 ? this.#keys.lastIndexOf(key) : before
    return index === -1 ? undefined : this.#fields.subarray(index * maxFields, (index + 1) * maxFields)
  }
}

const difference = (numbers: Int32Array, others: Int32Array): Int32Array =>
  numbers.filter((each) => each !== 0 && !others.includes(each))

/** A 32-bit hash (FNV-1a) of text. Fast, and not secure. */
function hashText(text: string, seed = 0): number {
  let hash = seed ^ 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  // Murmur's finalizer: sums of plain FNV hashes collide.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}

/** Hashes JSON, whatever the order of its fields. An undefined field counts as absent. The depth must be limited. */
function fingerprint(value: unknown, seed = 0): number {
  if (typeof value === 'string') return hashText(value, seed)
  if (typeof value !== 'object' || value === null) return hashText(String(value), seed + 1)
  if (Array.isArray(value)) return value.reduce<number>((hash, each) => fingerprint(each, hash), seed + 2)
  let sum = seed + 3
  for (const name in value) {
    const each = (value as Record<string, unknown>)[name]
    if (each !== undefined) sum = (sum + fingerprint(each, hashText(name, seed))) | 0
  }
  return hashText('', sum)
}
