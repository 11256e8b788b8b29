import { makeAddress, placeIn } from '../acting/place.ts'
import { readKeys, readSelection, type Selection } from '../acting/selection.ts'
import { visible } from '../reading/bytes.ts'
import { commonFailures } from '../reading/causes.ts'
import { Failures } from './cause.tsx'
import { counted, cut, PostForm, ReasonField } from './elements.tsx'
import type { Answer, PageState } from './page-state.ts'

/** Asks for confirmation before a discard. Stateless: the form carries the whole selection. */
export async function questionBefore(page: PageState, form: URLSearchParams): Promise<Answer> {
  const selection = readSelection(form)
  const keys = await readKeys(page.subject, 'discard', selection)
  const what = keys.length === 1 ? 'this dead letter' : counted(keys.length, 'dead letter')
  const hidden = Object.fromEntries([...form].filter(([name]) => name !== 'key' && name !== 'reason'))
  const back = makeAddress(page, placeIn(form))
  const cause = await causeIn(page, selection)
  if (keys.length === 0)
    return {
      title: 'Nothing was selected',
      still: true,
      body: (
        <p>
          <a href={back}>Back</a>
        </p>
      ),
    }
  return {
    title: `Discard ${what}?`,
    still: true,
    body: (
      <div class="card spaced">
        {cause && <Failures failures={commonFailures(cause)} isUnreadable={cause.isUnreadable} />}
        <p>The events are deleted permanently and will never be handled. This cannot be undone.</p>
        <PostForm page={page} action="discard" hidden={{ ...hidden, confirmed: 'yes' }}>
          {selection.scope === 'keys' && keys.map((key) => <input type="hidden" name="key" value={key} />)}
          <ReasonField value={form.get('reason') ?? undefined} />
          <button type="submit" class="danger">
            Discard {what} permanently
          </button>
          <a href={back}>Cancel</a>
        </PostForm>
      </div>
    ),
  }
}

async function causeIn({ subject: { causes }, stats }: PageState, selection: Selection) {
  const id = selection.scope === 'found' ? selection.filter.cause : undefined
  if (id === undefined) return undefined
  return (await causes.read((await stats()).deadLetters)).causes.find((each) => each.id === id)
}

/** Asks for confirmation before pausing an unknown handler, in case the name is mistyped. */
export function questionOfPause(page: PageState, form: URLSearchParams, handler: string): Answer {
  return {
    title: `Pause the unknown handler ${visible(cut(handler, 60))}?`,
    still: true,
    body: (
      <div class="card spaced">
        <p>
          No known process, event or dead letter has a handler of this name. Check the spelling: a pause of a name that
          does not exist stops nothing.
        </p>
        <PostForm page={page} action="pause" hidden={{ ...Object.fromEntries(form), confirmed: 'yes' }}>
          <button type="submit">Pause it anyway</button>
          <a href={makeAddress(page, placeIn(form))}>Cancel</a>
        </PostForm>
      </div>
    ),
  }
}
