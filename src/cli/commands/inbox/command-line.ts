import { program } from '../../help.ts'
import { maskedUrl } from '../../shared/mask.ts'
import { shellQuoted } from '../../shared/text.ts'
import type { InboxTarget } from './target.ts'

/** A command line for the same inbox, to paste. A password in its URL is masked; fill it in again. */
export function commandLine({ kind, address, name }: InboxTarget, action: string, ...words: readonly string[]): string {
  const shownAddress = kind === 'file' || !/:[^/].*@|\?/s.test(address) ? address : shownUrl(address)
  const flag = name === undefined ? [] : [kind === 'redis' ? '--queue' : '--schema', shellQuoted(name)]
  const separator = words.some((word) => word.startsWith('-')) ? ['--'] : []
  return [program, 'inbox', shellQuoted(shownAddress), action, ...flag, ...separator, ...words.map(shellQuoted)].join(
    ' ',
  )
}

/** Masks the password. Unencoded, it may contain any character: the host begins after the last @. */
export const shownUrl = (url: string): string => maskedUrl(url.replace(/\/\/.*@/s, '//…@'))
