import { flags, type InboxInput } from '../../src/cli/commands/inbox/flags.ts'

type Values = InboxInput['values']

const none = Object.fromEntries([...Object.keys(flags), 'json'].map((name) => [name, undefined])) as unknown as Values

/** The values of a command line of `inbox` with these flags. */
export const valuesOf = (given: Partial<Values> = {}): Values => ({ ...none, ...given })
