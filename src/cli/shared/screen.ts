import type { Readable } from 'node:stream'
import { LiveLines, type Output } from './live-lines.ts'
import { type Paint, paintIf, plainJson } from './text.ts'

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
  /** Shows how far a long command is, on standard error if that is a terminal. `undefined` clears it. */
  progress(line: string | undefined): void
  /** Shows lines below all that was printed, in place of those before. Absent unless the output is a terminal. */
  readonly draw?: ((lines: readonly string[]) => void) | undefined
  readonly paint: Paint
  readonly signal: AbortSignal
}

export function createScreen({ stdout, stderr, env, signal }: ProgramContext): Screen {
  const live = [new LiveLines(stdout), new LiveLines(stderr)] as const
  const above = (output: Output, line: string) => {
    for (const each of live) each.erase()
    output.write(`${line}\n`)
    for (const each of live) each.draw()
  }
  return {
    print: (line) => above(stdout, line),
    json: (value) => above(stdout, plainJson(value)),
    note: (line) => above(stderr, line),
    progress: (line) => live[1].show(line === undefined ? [] : [line]),
    draw: stdout.isTTY === true ? (lines) => live[0].show(lines) : undefined,
    paint: paintIf(stdout.isTTY === true && !env['NO_COLOR']),
    signal,
  }
}
