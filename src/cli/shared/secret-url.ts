import { type Flag, url } from './flags.ts'

/** The environment variable of the receiver's URL. */
const urlVariable = 'MEDIA_WEBHOOKS_URL'

/** A flag with an http or https URL that can contain a secret. A dash in its place reads it from standard input. */
export const secretUrl = (help: string): Flag<string> => ({ ...url(help), stdin: true })

/** A flag with the receiver's URL, which can contain a secret. It is also read from the environment. */
export const receiverUrl = (help: string): Flag<string> => ({ ...secretUrl(help), env: urlVariable })

/** The part of a command's help that says how to keep the receiver's URL secret. */
export const secretUrlHelp =
  `Other users of this machine can see the command line. If the URL contains a secret, set ${urlVariable}, or give a\n` +
  'dash (-) in its place and write the URL to standard input.'
