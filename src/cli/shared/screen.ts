import type { Readable } from 'node:stream'
import { LiveLines, type Output } from './live-lines.ts'
import { type Paint, paintIf, plainJson } from './text.ts'

export interface ProgramContext {
  readonly stdout: Output
  readonly stderr: Output
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly env: Readonly<Record<string, string | undefined>>
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal
  /** Aborted when the reader of the output is gone. Ends a command that serves. */
  readonly outputClosed?: AbortSignal
}

export interface Screen {
  /** Prints a result on stdout. */
  print(line: string): void
  json(value: unknown): void
  /** Prints a message on stderr. */
  note(line: string): void
  /** Progress line on stderr, if that is a terminal. `undefined` clears it. */
  progress(line: string | undefined): void
  /** Redraws lines at the bottom. Absent unless stdout is a terminal. */
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
