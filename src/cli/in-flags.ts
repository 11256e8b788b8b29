import type { Command } from './command.ts'
import { flagName } from './flags.ts'

/**
 * A message of the client or the emulator in the words of the command line: `createClient: baseUrl has to be …` is
 * `--base-url has to be …`.
 */
export function inFlags(message: string, { flags }: Command): string {
  const [, parameter = '', rest] =
    /^(?:createClient|createEmulator|(?:apiKey|webhook)\.\w+): (\w+) (.*)$/s.exec(message) ?? []
  const name = parameter === 'apiKeyName' ? 'name' : parameter
  return Object.hasOwn(flags, name) ? `${flagName(name)} ${rest}` : message
}
