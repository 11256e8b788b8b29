import { type Flag, url } from './flags.ts'

const urlVariable = 'MEDIA_WEBHOOKS_URL'

/** A URL that may contain a secret; `-` reads it from standard input. */
export const secretUrl = (help: string): Flag<string> => ({ ...url(help), stdin: true })

/** The receiver's URL, also from the environment. */
export const receiverUrl = (help: string): Flag<string> => ({ ...secretUrl(help), env: urlVariable })

export const secretUrlHelp =
  `Other users of this machine can see the command line. If the URL contains a secret, set ${urlVariable}, or pass\n` +
  'a dash (-) and write the URL to standard input.'
