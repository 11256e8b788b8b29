import type { Readable } from 'node:stream'
import { type Paint, paintIf } from './text.ts'

/** A stream that a command writes to. */
interface Output {
  write(text: string): unknown
  readonly isTTY?: boolean
}

/** The streams, environment and signal that the program runs with. */
export interface ProgramContext {
  readonly stdout: Output
  readonly stderr: Output
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly env: Readonly<Record<string, string | undefined>>
  /** Aborted when the user interrupts the program. */
  readonly signal: AbortSignal
  /** Aborted when the reader of the output has closed it. It ends a command that serves. */
  readonly outputClosed?: AbortSignal
}

/** The output of a command, and the signal that ends it. */
export interface Screen {
  /** Prints a result. */
  print(line: string): void
  /** Prints a result as JSON on one line. */
  json(value: unknown): void
  /** Prints a message that is not a result, on standard error. */
  note(line: string): void
  readonly paint: Paint
  readonly signal: AbortSignal
}

export function createScreen({ stdout, stderr, env, signal }: ProgramContext): Screen {
  return {
    print: (line) => void stdout.write(`${line}\n`),
    json: (value) => void stdout.write(`${plainJson(value)}\n`),
    note: (line) => void stderr.write(`${line}\n`),
    paint: paintIf(stdout.isTTY === true && !env['NO_COLOR']),
    signal,
  }
}

/** Escapes every character that could control a terminal. JSON.stringify escapes only some of them. */
const plainJson = (value: unknown): string =>
  JSON.stringify(value).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    [...Array(character.length).keys()].map((at) => `\\u${hex(character.charCodeAt(at))}`).join(''),
  )

const hex = (unit: number): string => unit.toString(16).padStart(4, '0')
