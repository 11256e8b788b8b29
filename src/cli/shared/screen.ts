import { type Paint, paintIf } from './text.ts'

/** A stream that a command writes to. */
interface Output {
  write(text: string): unknown
  readonly isTTY?: boolean
}

/** What the program runs in. */
export interface Surroundings {
  readonly stdout: Output
  readonly stderr: Output
  readonly env: Readonly<Record<string, string | undefined>>
  /** Aborted when the user wants the command to end. */
  readonly signal: AbortSignal
}

/** What a command prints to, and when it has to end. */
export interface Screen {
  /** Prints a result. */
  print(line: string): void
  /** Prints a result for machines, on a line of its own. */
  json(value: unknown): void
  /** Tells the user what is not a result. */
  note(line: string): void
  readonly paint: Paint
  readonly signal: AbortSignal
}

export function createScreen({ stdout, stderr, env, signal }: Surroundings): Screen {
  return {
    print: (line) => void stdout.write(`${line}\n`),
    json: (value) => void stdout.write(`${plainJson(value)}\n`),
    note: (line) => void stderr.write(`${line}\n`),
    paint: paintIf(stdout.isTTY === true && !env['NO_COLOR']),
    signal,
  }
}

/** JSON in which what would steer a terminal is escaped: JSON.stringify does that to some of it only. */
const plainJson = (value: unknown): string =>
  JSON.stringify(value).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    [...Array(character.length).keys()].map((at) => `\\u${hex(character.charCodeAt(at))}`).join(''),
  )

const hex = (unit: number): string => unit.toString(16).padStart(4, '0')
