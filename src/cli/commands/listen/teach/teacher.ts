import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { isObject, type JsonObject } from '../../../../events/json.ts'
import { shellQuoted } from '../../../shared/text.ts'
import type { ReceivedDelivery } from '../find-verifiers.ts'
import { guess, type Sample } from './guess.ts'
import { senderCode, typeOf } from './sender-code.ts'
import { describeShape, shapeOf } from './shape.ts'

/** What deliveries of another service teach about it. Contains no value of theirs but names of types. */
export interface Lesson {
  /** Absent if no field or header looks like the type. */
  readonly type: string | undefined
  /** The fields of this delivery. */
  readonly fields: readonly string[]
  /** A sender for all deliveries so far, and their verifier. */
  readonly code: string
  /** `code` differs from the previous lesson's. */
  readonly isNew: boolean
}

// Bound the memory, and what is printed of one delivery.
const [maxSamples, maxLines] = [100, 100]

/** Returns a function that learns from one delivery after another. */
export function createTeacher() {
  let samples: readonly Sample[] = []
  let verifier: string | undefined
  let code: string | undefined
  return (payload: JsonObject, { fields, headers }: ReceivedDelivery, foundVerifier: string | undefined): Lesson => {
    const isListed = Array.isArray(payload)
    const payloads: readonly unknown[] = isListed ? payload : [payload]
    const received = payloads.filter(isObject).map((each) => ({ payload: each, fields, headers, isListed }))
    verifier = foundVerifier ?? verifier
    const more = [...samples, ...received].slice(0, maxSamples)
    const extended = senderCode(more, verifier)
    const isNew = extended !== code
    // A delivery that teaches nothing is forgotten.
    if (isNew) [samples, code] = [more, extended]
    const lines = describeShape(shapeOf([payload]))
    const rest = lines.length - maxLines
    return {
      type: received[0] && typeOf(guess(more), received[0]),
      fields: rest > 0 ? [...lines.slice(0, maxLines), `… and ${rest} more`] : lines,
      code: extended,
      isNew,
    }
  }
}

/**
 * Returns a function that writes a module to a new file, and later ones over what it wrote. It never rejects, and
 * resolves to a sentence about the result.
 * @throws Error if there is such a file
 */
export function createSenderFile(path: string): (code: string) => Promise<string> {
  const exists = new Error(
    `there is a ${shellQuoted(path)} already, and listen overwrites no file: pass another --write`,
  )
  if (existsSync(path)) throw exists
  let written: string | undefined
  let last = Promise.resolve('')
  const write = async (code: string) => {
    if (written !== undefined && (await readFile(path, 'utf8').catch(() => undefined)) !== written)
      throw new Error(`${shellQuoted(path)} was edited or deleted, so listen writes it no more`)
    await writeFile(path, code, { flag: written === undefined ? 'wx' : 'w' }).catch((error) => {
      throw error.code === 'EEXIST' ? exists : new Error(`cannot write ${shellQuoted(path)}: ${error.code}`)
    })
    written = code
    return `wrote ${shellQuoted(path)}`
  }
  return (code) => {
    last = last.then(() => write(code)).catch((error: Error) => error.message)
    return last
  }
}
