import { keysWithId } from '../../../inbox/operations/finding.ts'
import { shortId } from '../../../inbox/operations/operations.ts'
import type { InspectedInbox } from '../../../inbox/reading.ts'
import { pasted } from '../../help.ts'
import { maskedUrl } from '../../shared/mask.ts'
import { shellQuoted } from '../../shared/text.ts'
import type { InboxTarget } from './target.ts'

/** A command line for the same inbox, to paste. A password in its URL is masked; fill it in again. */
export function commandLine({ kind, address, name }: InboxTarget, action: string, ...words: readonly string[]): string {
  const shownAddress = kind === 'file' || !/:[^/].*@|\?/s.test(address) ? address : shownUrl(address)
  const flag = name === undefined ? [] : [kind === 'redis' ? '--queue' : '--schema', shellQuoted(name)]
  const separator = words.some((word) => word.startsWith('-')) ? ['--'] : []
  return [pasted, 'inbox', shellQuoted(shownAddress), action, ...flag, ...separator, ...words.map(shellQuoted)].join(
    ' ',
  )
}

/** A command line about one event. It has the short id, or the key if the id finds no event or several. */
export async function eventCommand(
  { inbox, target }: { readonly inbox: InspectedInbox; readonly target: InboxTarget },
  action: string,
  key: string,
): Promise<string> {
  const id = await shortId(key)
  const [found, ...others] = await keysWithId(inbox, id)
  return commandLine(target, action, found === key && others.length === 0 ? id : key)
}

/** Masks the password. Unencoded, it may contain any character: the host begins after the last @. */
export const shownUrl = (url: string): string => maskedUrl(url.replace(/\/\/.*@/s, '//…@'))
