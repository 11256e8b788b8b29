import { testSchemes } from './schemes.suite.ts'

testSchemes('on Node')
