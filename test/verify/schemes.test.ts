import { testSchemes } from './schemes.ts'

testSchemes('on Node')
