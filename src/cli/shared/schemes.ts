import { type SigningOptions, verifierFor } from '../../emulator/sending/signing.ts'
import type { Input } from './command.ts'
import { choice, flagName, text, UsageError } from './flags.ts'
import { plain } from './text.ts'

/** The variable that holds the secret, here and in the lines to paste. */
const secretVariable = 'MEDIA_WEBHOOKS_SECRET'

/** The flags with which a scheme is described. */
export const schemeFlags = {
  secret: text('<text>', 'the shared secret', secretVariable),
  header: text('<name>', 'the header of the token or signature'),
  prefix: text('<text>', "what stands before it in the header, such as 'Bearer ' or sha256="),
  parameter: text('<name>', 'url-token: the query parameter (default: token)'),
  in: choice(['query', 'path'], 'url-token: where the token stands in the URL (default: query)'),
  username: text('<text>', 'basic-auth: the username'),
  password: text('<text>', 'basic-auth: the password', secretVariable),
  algorithm: choice(['sha1', 'sha256', 'sha512'], 'hmac-signature: the hash (default: sha256)'),
  encoding: choice(['hex', 'base64'], 'hmac-signature: how it is written (default: hex)'),
  timestampHeader: text('<name>', 'hmac-signature: the header of the time, where time and body are signed'),
}

type SchemeFlag = keyof typeof schemeFlags

/** Each scheme, with the flags it needs and those it may have. */
const schemes = {
  'url-token': { needs: ['secret'], takes: ['parameter', 'in'] },
  'header-token': { needs: ['secret', 'header'], takes: ['prefix'] },
  'basic-auth': { needs: ['username', 'password'], takes: [] },
  'hmac-signature': { needs: ['secret', 'header'], takes: ['prefix', 'algorithm', 'encoding', 'timestampHeader'] },
  'standard-webhooks': { needs: ['secret'], takes: [] },
  unverified: { needs: [], takes: [] },
} as const satisfies Record<string, { needs: readonly SchemeFlag[]; takes: readonly SchemeFlag[] }>

type SchemeName = keyof typeof schemes

/** The flag that chooses a scheme. */
export const schemeChoice = (help: string) => choice(Object.keys(schemes) as SchemeName[], help)

/**
 * Reads the scheme that was chosen by `--sign` or `--verify`; `undefined` where none was, or `unverified`.
 * @param free the flags that the command itself has a use for
 * @throws UsageError for a flag that is missing, or that the scheme has no use for
 */
export function readScheme(
  chooser: '--sign' | '--verify',
  name: SchemeName | undefined,
  { values, given }: Pick<Input<typeof schemeFlags>, 'values' | 'given'>,
  free: readonly SchemeFlag[] = [],
): SigningOptions | undefined {
  const { needs, takes }: { needs: readonly SchemeFlag[]; takes: readonly SchemeFlag[] } = schemes[name ?? 'unverified']
  const used = [...needs, ...takes]
  for (const flag of Object.keys(schemeFlags) as SchemeFlag[]) {
    if (!given.has(flag) || used.includes(flag) || free.includes(flag)) continue
    throw new UsageError(`${flagName(flag)} goes with ${chooser} ${schemesWith(flag)}, not ${name ?? 'without it'}`)
  }
  for (const flag of needs) {
    const { takes: what, env } = schemeFlags[flag]
    if (values[flag] !== undefined) continue
    throw new UsageError(`${chooser} ${name} needs ${flagName(flag)} ${what}${env === undefined ? '' : ` (or ${env})`}`)
  }
  if (name === undefined || name === 'unverified') return undefined
  const options = used.filter((flag) => values[flag] !== undefined).map((flag) => [flag, values[flag]])
  const scheme = { scheme: name, ...Object.fromEntries(options) } as SigningOptions
  // For what it rejects, such as a secret with a newline at its end.
  verifierFor(scheme)
  return scheme
}

/** What must not be shown of a scheme. */
export const secretOf = (scheme: SigningOptions): string => ('password' in scheme ? scheme.password : scheme.secret)

/** Whether the last segment of the URL's path is the secret. */
export const hasTokenInPath = (scheme: SigningOptions | undefined): boolean =>
  scheme?.scheme === 'url-token' && scheme.in === 'path'

const schemesWith = (flag: SchemeFlag): string =>
  Object.entries(schemes)
    .filter(([, { needs, takes }]) => [...needs, ...takes].some((each) => each === flag))
    .map(([name]) => name)
    .join(', ')

/** The line of code that makes the verifier of a scheme. It names the variable of the secret, never the secret. */
export function lineFor({ scheme, ...options }: SigningOptions): string {
  const members = Object.entries(options).map(([name, value]) => {
    if (name === 'secret' || name === 'password') return `${name}: process.env.${secretVariable}!`
    return name === 'timestampHeader' ? `timestamp: { header: ${quote(value)} }` : `${name}: ${quote(value)}`
  })
  const verifier = scheme.replace(/-[a-z]/g, (match) => match.slice(1).toUpperCase())
  return `${verifier}({ ${members.join(', ')} })`
}

const quote = (value: string): string => `'${plain(value.replace(/['\\]/g, '\\$&'))}'`
