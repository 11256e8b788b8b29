import type { EmulatedService } from '../service/service.ts'
import type { Notice } from './notices.tsx'
import type { View } from './view.ts'

/** What the components of the page are made from. */
export interface PageState {
  readonly service: EmulatedService
  /** Of the emulator, such as `http://127.0.0.1:4010`. */
  readonly origin: string
  readonly view: View
  /** What came of the last action, until it has been shown. */
  readonly notice?: Notice | undefined
  readonly formError?: FormError | undefined
}

/** An action that was refused, to be shown beside its form. */
export interface FormError {
  /** Its path below `/page/`, such as `webhooks` or `webhooks/<id>/edit`. */
  readonly action: string
  readonly message: string
  /** What its form held, which is shown again. */
  readonly typed: URLSearchParams
}

/** What was typed into the form of an action, when it was refused. */
export const typedInto = ({ formError }: PageState, action: string): URLSearchParams | undefined =>
  formError?.action === action ? formError.typed : undefined

/** The name of a webhook that may have been deleted. */
export const webhookName = ({ service }: PageState, id: string): string =>
  service.workspace.webhooks.get(id)?.name ?? 'deleted webhook'
